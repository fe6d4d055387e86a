//! Parameters of queues that have any. They follow the name, as in `b-queue:batch=64:penalty=0`.

use serde::Serialize;

/// A number that a queue works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is unless it is given.
    pub usual: ParameterDefault,
    /// The largest.
    pub most: usize,
    /// What it decides, with its unit.
    pub meaning: &'static str,
    /// The instruction of x86-64 that it takes unless it is 0.
    #[serde(skip)]
    instruction: Option<&'static str>,
}

/// What a parameter is unless it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterDefault {
    /// This.
    Number(usize),
    /// The capacity divided by this, at least one.
    Share(usize),
}

/// Parameters that were given, in the order of those that a queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parameters([Option<usize>; Parameters::MOST]);

impl Parameter {
    /// One that is a number.
    pub(super) const fn number(name: &'static str, usual: usize, meaning: &'static str) -> Self {
        Parameter {
            name,
            usual: ParameterDefault::Number(usual),
            most: 1_000_000,
            instruction: None,
            meaning,
        }
    }

    /// One that follows from the capacity.
    pub(super) const fn share(name: &'static str, of: usize, meaning: &'static str) -> Self {
        Parameter {
            usual: ParameterDefault::Share(of),
            ..Self::number(name, 0, meaning)
        }
    }

    /// A switch: 0 is off, 1 is on.
    pub(super) const fn switch(name: &'static str, meaning: &'static str) -> Self {
        Parameter {
            most: 1,
            ..Self::number(name, 0, meaning)
        }
    }

    /// The same, and yes takes an instruction that only x86-64 has.
    pub(super) const fn on_x86_64(self, instruction: &'static str) -> Self {
        Parameter {
            instruction: Some(instruction),
            ..self
        }
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}=", self.name)?;
        match self.usual {
            ParameterDefault::Number(usual) => write!(formatter, "{usual}"),
            ParameterDefault::Share(of) => write!(formatter, "capacity/{of}"),
        }
    }
}

impl Parameters {
    /// No queue has more.
    const MOST: usize = 4;

    /// From `name=number` between colons.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn parse(text: &str, parameters: &[Parameter]) -> Result<Self, String> {
        let mut given = Parameters::default();
        for part in text.split(':') {
            let named = part.split_once('=').and_then(|(name, number)| {
                let at = parameters.iter().position(|it| it.name == name)?;
                Some((at, number))
            });
            let Some((at, number)) = named else {
                let all: Vec<String> = parameters.iter().map(ToString::to_string).collect();
                return Err(match all.is_empty() {
                    true => format!("{part:?}: this queue has no parameters"),
                    false => format!("{part:?} is none of its parameters: {}", all.join(", ")),
                });
            };
            let most = parameters[at].most;
            let number = number.parse().ok().filter(|number| *number <= most);
            let number =
                number.ok_or_else(|| format!("{part:?} is not a number from 0 to {most}"))?;
            if let Some(instruction) = parameters[at].instruction
                && number > 0
                && cfg!(not(target_arch = "x86_64"))
            {
                return Err(format!(
                    "{part:?} needs the instruction {instruction} of x86-64, which {} does not have: leave it out",
                    std::env::consts::ARCH
                ));
            }
            if given.0[at].replace(number).is_some() {
                return Err(format!("{part:?} is given twice"));
            }
        }
        Ok(given)
    }

    /// These, in order.
    #[cfg(test)]
    pub(super) fn of<const N: usize>(numbers: [usize; N]) -> Self {
        let mut given = Parameters::default();
        for (place, number) in given.0.iter_mut().zip(numbers) {
            *place = Some(number);
        }
        given
    }

    /// The values of all, in a queue of this capacity.
    pub(super) fn values<const N: usize>(
        &self,
        parameters: &[Parameter; N],
        capacity: usize,
    ) -> [usize; N] {
        const { assert!(N <= Parameters::MOST) };
        std::array::from_fn(|at| {
            self.0[at].unwrap_or(match parameters[at].usual {
                ParameterDefault::Number(usual) => usual,
                ParameterDefault::Share(of) => (capacity / of).max(1),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Parameter; 2] = [
        Parameter::share("batch", 16, "elements"),
        Parameter::switch("twice", "whether"),
    ];

    #[test]
    fn what_is_given_counts_and_the_rest_follows_from_the_capacity() {
        let values = |text, capacity| {
            Parameters::parse(text, &ALL)
                .unwrap()
                .values(&ALL, capacity)
        };
        assert_eq!(Parameters::default().values(&ALL, 1024), [64, 0]);
        assert_eq!(Parameters::default().values(&ALL, 3), [1, 0]);
        assert_eq!(values("twice=1", 160), [10, 1]);
        assert_eq!(values("twice=0:batch=7", 160), [7, 0]);
        assert_eq!(
            Parameters::of([7, 0]),
            Parameters::parse("batch=7:twice=0", &ALL).unwrap()
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        let refused = |text| Parameters::parse(text, &ALL).unwrap_err();
        let expected = "\"size=1\" is none of its parameters: batch=capacity/16, twice=0";
        assert_eq!(refused("size=1"), expected);
        assert_eq!(
            refused("twice=2"),
            "\"twice=2\" is not a number from 0 to 1"
        );
        let expected = "\"batch=-1\" is not a number from 0 to 1000000";
        assert_eq!(refused("batch=-1"), expected);
        assert_eq!(refused("batch=1:batch=2"), "\"batch=2\" is given twice");
        assert!(refused("").starts_with("\"\" is none of"));
        let cldemote = [Parameter::switch("demote", "whether").on_x86_64("cldemote")];
        assert!(Parameters::parse("demote=0", &cldemote).is_ok());
        let demoted = Parameters::parse("demote=1", &cldemote);
        #[cfg(target_arch = "x86_64")]
        assert!(demoted.is_ok());
        #[cfg(not(target_arch = "x86_64"))]
        {
            let why = demoted.unwrap_err();
            let words = "\"demote=1\" needs the instruction cldemote of x86-64, which ";
            assert!(why.starts_with(words), "{why}");
        }
        let none = Parameters::parse("batch=1", &[]).unwrap_err();
        assert_eq!(none, "\"batch=1\": this queue has no parameters");
    }
}
