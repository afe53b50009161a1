import unittest
from datetime import date
from itertools import islice
from calendar_range import days

class Days(unittest.TestCase):
    def test_the_last_day_is_included(self):
        self.assertEqual(list(days(date(2026, 2, 27), date(2026, 3, 1))), [date(2026, 2, 27), date(2026, 2, 28), date(2026, 3, 1)])
    def test_one_day(self):
        self.assertEqual(list(days(date(2026, 1, 1), date(2026, 1, 1))), [date(2026, 1, 1)])
    def test_an_empty_range_ends(self):
        self.assertEqual(list(islice(days(date(2026, 1, 2), date(2026, 1, 1)), 5)), [])
