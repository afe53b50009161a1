import unittest
from memo import memoize

class Memoize(unittest.TestCase):
    def test_keyword_arguments_are_told_apart(self):
        calls = []
        @memoize
        def power(base, exponent=2):
            calls.append((base, exponent))
            return base ** exponent
        self.assertEqual([power(2), power(2, exponent=3), power(2, exponent=3), power(2)], [4, 8, 8, 4])
        self.assertEqual(len(calls), 2)
    def test_the_order_of_keywords_does_not_matter(self):
        @memoize
        def join(**words):
            return sorted(words)
        join(a=1, b=2)
        join(b=2, a=1)
        self.assertEqual(len(join.cache), 1)
