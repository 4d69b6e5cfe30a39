"""Shows results to people: pictures for papers and for a browser, and the report."""
