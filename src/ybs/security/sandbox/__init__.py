"""The sandbox: bubblewrap, Landlock or seatbelt around the programs that are started."""
