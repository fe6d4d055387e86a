//! The queues, one file each: those written here.
