"""slotqueue beside its peers: every scheduler in a virtual environment of its own, under one observer."""
