"""Chats: a gateway between platforms such as Telegram and sessions of ybs. It loses no message and answers each of them once.

A message goes through these, in this order: a channel (`telegram.py`) hands it to the inbox (`store.py`), and only then says to its
platform that it has it; `reception.py` decides who may speak (`people.py`) and how often (`rates.py`), answers commands and buttons
(`chat_commands.py`, `asking.py`), and finds the session (`chats.py`); all else is a turn (`turns.py`), of which a chat has
one at a time; what is said in the chat goes through the ledger of `outbox.py`, formatted by `formatting.py`.
"""
