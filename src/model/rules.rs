//! How a room names its deviations from its peer.

/// Makes the enum `Rule` of a room: a variant, a name for documentation and tests, and what is done, in one line, for each.
macro_rules! named_rules {
    ($($variant:ident $name:literal $statement:literal)*) => {
        /// A named deviation from the peers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $statement] $variant,)*
        }

        impl Rule {
            /// All of them, in the order of `docs/parity.md`.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name that documentation and tests use.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What is done, in one line.
            pub fn statement(self) -> &'static str {
                match self { $(Self::$variant => $statement,)* }
            }
        }
    };
}

pub(crate) use named_rules;
