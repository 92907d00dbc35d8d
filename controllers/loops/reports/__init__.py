"""PolicyReports: rows from admission and from the background scan, one report for each resource."""
