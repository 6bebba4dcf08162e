"""Change detection, the plan of visits, revisits, and the versions of a page."""
