//! Single values of a scenario file, each refused where it is impossible.

use std::{fmt, marker::PhantomData, str::FromStr};

use fullpipe_units::{Bytes, Micros, Rate, fraction};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};

use crate::QueueSize;

/// A quoted text with its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Unit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Reader<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quoted text with its unit, such as \"100M\" or \"80ms\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(|e| E::custom(format_args!("`{text}` is not possible: {e}")))
            }
        }
        deserializer.deserialize_str(Reader(PhantomData)).map(Self)
    }
}

/// A rate above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateAboveZero(pub(super) Rate);

impl<'de> Deserialize<'de> for RateAboveZero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Unit(rate) = Unit::<Rate>::deserialize(deserializer)?;
        if rate == Rate::ZERO {
            return Err(Error::custom("a rate of zero carries nothing; give one above zero, such as \"10M\""));
        }
        Ok(Self(rate))
    }
}

/// A time of an hour at most: anything longer is a slip of the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) Micros);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Unit(span) = Unit::<Micros>::deserialize(deserializer)?;
        if span > Micros::from_secs(3_600) {
            return Err(Error::custom(format_args!("{span} is too long; at most 3600s")));
        }
        Ok(Self(span))
    }
}

/// A value that is no table and no list. Values of several forms are read as this one type: the code that reads a type takes 10 KB.
enum Scalar {
    Whole(i64),
    Number(f64),
    Text(String),
}

impl Scalar {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, expected: &'static str) -> Result<Self, D::Error> {
        struct Reader(&'static str);
        impl Visitor<'_> for Reader {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(value))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Reader(expected))
    }

    /// How an error names it.
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Whole(value) => Unexpected::Signed(*value),
            Self::Number(value) => Unexpected::Float(*value),
            Self::Text(text) => Unexpected::Str(text),
        }
    }
}

/// A size above zero: a text with a unit, or a whole number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) Bytes);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a size such as 17520, \"64k\" or \"1.5MB\"";
        let bytes = match Scalar::read(deserializer, EXPECTED)? {
            Scalar::Text(text) => {
                text.parse().map_err(|e| Error::custom(format_args!("`{text}` is not possible: {e}")))?
            }
            whole @ Scalar::Whole(bytes) => {
                Bytes::new(bytes.try_into().map_err(|_| Error::invalid_value(whole.unexpected(), &EXPECTED))?)
            }
            number @ Scalar::Number(_) => return Err(Error::invalid_type(number.unexpected(), &EXPECTED)),
        };
        if bytes == Bytes::ZERO {
            return Err(Error::custom("a size of zero holds nothing; give one above zero"));
        }
        Ok(Self(bytes))
    }
}

/// A probability or fraction, 0 to 1; as a text also in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probability(pub(super) f64);

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a number from 0 to 1, or a text such as \"0.1%\"";
        let value = match Scalar::read(deserializer, EXPECTED)? {
            Scalar::Number(value) => value,
            Scalar::Whole(value) => value as f64,
            Scalar::Text(text) => {
                fraction(&text).ok_or_else(|| Error::invalid_value(Unexpected::Str(&text), &EXPECTED))?
            }
        };
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::custom(format_args!("{value} is not a probability or fraction; give one from 0 to 1")));
        }
        Ok(Self(value))
    }
}

/// The size of a queue as a text: `1bdp`, `100p`, `64k`, `20ms`.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueText(pub(super) QueueSize);

impl<'de> Deserialize<'de> for QueueText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::read(deserializer, Self::EXPECTED)? {
            Scalar::Text(text) => {
                text.parse().map(Self).map_err(|e| Error::custom(format_args!("`{text}` is not possible: {e}")))
            }
            other => Err(Error::invalid_type(other.unexpected(), &Self::EXPECTED)),
        }
    }
}

/// The value of a setting: a text, or a whole number.
#[derive(Clone, Debug)]
pub(super) struct Setting(pub(super) String);

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a text or a whole number";
        match Scalar::read(deserializer, EXPECTED)? {
            Scalar::Text(text) => Ok(Self(text)),
            Scalar::Whole(value) => Ok(Self(value.to_string())),
            number @ Scalar::Number(_) => Err(Error::invalid_type(number.unexpected(), &EXPECTED)),
        }
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count<const MIN: u32, const MAX: u32>(pub(super) u32);

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Count<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?;
        let count = u32::try_from(value).ok().filter(|count| (MIN..=MAX).contains(count));
        count.map(Self).ok_or_else(|| Error::custom(format_args!("{value} is not possible; give {MIN} to {MAX}")))
    }
}

/// What is written plainly where no table is needed.
pub(super) trait Plain {
    /// What may stand there, a table among it.
    const EXPECTED: &str;
}

impl Plain for Probability {
    const EXPECTED: &str = "a number from 0 to 1, a text such as \"0.1%\", or a table";
}

impl Plain for QueueText {
    const EXPECTED: &str = "a text such as \"1bdp\", \"100p\", \"64k\" or \"20ms\", or a table";
}

impl Plain for u32 {
    const EXPECTED: &str = "a number or a table";
}

/// A plain value for the usual case, a table for the rest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Either<P, M> {
    Plain(P),
    Table(M),
}

impl<'de, P: Plain + Deserialize<'de>, M: Deserialize<'de>> Deserialize<'de> for Either<P, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<P, M>(PhantomData<(P, M)>);
        impl<'de, P: Plain + Deserialize<'de>, M: Deserialize<'de>> Visitor<'de> for Reader<P, M> {
            type Value = Either<P, M>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(P::EXPECTED)
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
                P::deserialize(serde::de::value::I64Deserializer::new(value)).map(Either::Plain)
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
                P::deserialize(serde::de::value::F64Deserializer::new(value)).map(Either::Plain)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                P::deserialize(serde::de::value::StrDeserializer::new(text)).map(Either::Plain)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                M::deserialize(MapAccessDeserializer::new(map)).map(Either::Table)
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}
