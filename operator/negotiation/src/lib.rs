//! Compares schemas of one type and merges them into the largest that all clusters accept. No I/O.
