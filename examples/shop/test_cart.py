import unittest

import cart


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(cart.total([]), 0)

    def test_three_pens_cost_three_times_as_much_as_one(self):
        items = []
        cart.add(items, "pen", 150, count=3)
        self.assertEqual(cart.total(items), 450)

    def test_a_count_of_zero_is_refused(self):
        with self.assertRaises(ValueError):
            cart.add([], "pen", 150, count=0)


if __name__ == "__main__":
    unittest.main()
