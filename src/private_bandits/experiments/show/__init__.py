"""What people look at: pictures for papers and for a browser, and the report."""
