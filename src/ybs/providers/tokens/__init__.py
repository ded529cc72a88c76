"""Token estimates: by features of the text, corrected by what providers report."""
