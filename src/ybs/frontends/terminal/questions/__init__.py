"""Questions and menus: what is asked, and which keys count as an answer."""
