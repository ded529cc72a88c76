import unittest

import cart


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(cart.total([]), 0)

    def test_three_pens_cost_three_times_as_much_as_one(self):
        self.assertEqual(cart.total([("pen", 150, 3)]), 450)

    def test_a_large_order_is_sent_for_nothing(self):
        self.assertEqual(cart.shipping([("desk", 9900, 1)]), 0)


if __name__ == "__main__":
    unittest.main()
