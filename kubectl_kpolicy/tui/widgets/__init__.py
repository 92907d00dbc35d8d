"""Widgets of the console: the table, the frame around it, gauges and details."""
