"""The pictures of the README: every screen of the console, drawn from a recording of a real session that lies beside them."""
