//! Single values of a scenario file, each refused where it is impossible.

use std::{fmt, marker::PhantomData, str::FromStr};

use fullpipe_units::{Bytes, Micros, Rate};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};

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

/// A size above zero: a text with a unit, or a whole number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) Bytes);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 17520, \"64k\" or \"1.5MB\"")
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Bytes, E> {
                u64::try_from(bytes).map(Bytes::new).map_err(|_| E::invalid_value(Unexpected::Signed(bytes), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
                text.parse().map_err(|e| E::custom(format_args!("`{text}` is not possible: {e}")))
            }
        }
        let bytes = deserializer.deserialize_any(Reader)?;
        if bytes == Bytes::ZERO {
            return Err(Error::custom("a size of zero holds nothing; give one above zero"));
        }
        Ok(Self(bytes))
    }
}

/// A probability or fraction, 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probability(pub(super) f64);

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::custom(format_args!("{value} is not a probability or fraction; give one from 0 to 1")));
        }
        Ok(Self(value))
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

/// A plain value for the usual case, a table for the rest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Either<P, M> {
    Plain(P),
    Table(M),
}

impl<'de, P: Deserialize<'de>, M: Deserialize<'de>> Deserialize<'de> for Either<P, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<P, M>(PhantomData<(P, M)>);
        impl<'de, P: Deserialize<'de>, M: Deserialize<'de>> Visitor<'de> for Reader<P, M> {
            type Value = Either<P, M>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a table")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
                P::deserialize(serde::de::value::I64Deserializer::new(value)).map(Either::Plain)
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
                P::deserialize(serde::de::value::F64Deserializer::new(value)).map(Either::Plain)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                M::deserialize(MapAccessDeserializer::new(map)).map(Either::Table)
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}
