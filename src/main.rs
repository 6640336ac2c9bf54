//! The binary: parses, runs, and ends with the code that the library decided.

fn main() {}
