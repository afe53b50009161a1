import csv, io, unittest
from table import format_row

class FormatRow(unittest.TestCase):
    def test_rows_survive_a_round_trip(self):
        for row in (["a", "b"], ['say "hi"', "x"], ["a,b", "c"], ["two\nlines", ""], [""], ["\r", '"']):
            parsed = list(csv.reader(io.StringIO(format_row(row) + "\r\n", newline="")))
            self.assertEqual(parsed, [row], row)
    def test_plain_fields_are_not_quoted(self):
        self.assertEqual(format_row(["a", 1]), "a,1")
