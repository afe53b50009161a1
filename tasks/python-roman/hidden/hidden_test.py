import unittest
from roman import to_roman

class ToRoman(unittest.TestCase):
    def test_numerals(self):
        for number, numeral in {1: "I", 4: "IV", 9: "IX", 14: "XIV", 40: "XL", 90: "XC", 400: "CD", 1994: "MCMXCIV", 3999: "MMMCMXCIX"}.items():
            self.assertEqual(to_roman(number), numeral)
    def test_numbers_out_of_range(self):
        for number in (0, -1, 4000):
            with self.assertRaises(ValueError):
                to_roman(number)
