import unittest
from retrying import retry

class Retry(unittest.TestCase):
    def test_the_last_error_is_raised_and_no_wait_follows_it(self):
        waits, errors = [], iter([KeyError("a"), KeyError("b"), KeyError("c")])
        def action():
            raise next(errors)
        with self.assertRaises(KeyError) as caught:
            retry(action, attempts=3, delay=0.5, sleep=waits.append)
        self.assertEqual(caught.exception.args, ("c",))
        self.assertEqual(waits, [0.5, 0.5])
    def test_a_success_is_returned(self):
        results = iter([ValueError(), 7])
        def action():
            result = next(results)
            if isinstance(result, Exception):
                raise result
            return result
        self.assertEqual(retry(action, sleep=lambda _: None), 7)
