//! Parses the command line and dispatches; the library does the work.

fn main() {}
