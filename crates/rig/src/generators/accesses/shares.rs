//! The functions of an instruction set and a kind of store, by their share of reads.

/// `functions!` with a function for each number of reads, whose names contain the share of reads in percent.
macro_rules! all_shares {
    ($($begin:tt)*) => {
        functions! {
            $($begin)*
            reads_0 = 0 reads_2 = 1 reads_4 = 2 reads_6 = 3 reads_8 = 4 reads_10 = 5 reads_12 = 6 reads_14 = 7
            reads_16 = 8 reads_18 = 9 reads_20 = 10 reads_22 = 11 reads_24 = 12 reads_26 = 13 reads_28 = 14
            reads_30 = 15 reads_32 = 16 reads_34 = 17 reads_36 = 18 reads_38 = 19 reads_40 = 20 reads_42 = 21
            reads_44 = 22 reads_46 = 23 reads_48 = 24 reads_50 = 25 reads_52 = 26 reads_54 = 27 reads_56 = 28
            reads_58 = 29 reads_60 = 30 reads_62 = 31 reads_64 = 32 reads_66 = 33 reads_68 = 34 reads_70 = 35
            reads_72 = 36 reads_74 = 37 reads_76 = 38 reads_78 = 39 reads_80 = 40 reads_82 = 41 reads_84 = 42
            reads_86 = 43 reads_88 = 44 reads_90 = 45 reads_92 = 46 reads_94 = 47 reads_96 = 48 reads_98 = 49
            reads_100 = 50
        }
    };
}
