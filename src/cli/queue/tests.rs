//! The option table, from text to configuration.
