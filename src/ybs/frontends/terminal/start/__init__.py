"""The first start: which model, found on this machine or named."""
