//! The store in a PostgreSQL database, in a schema of its own.

use std::{env, error::Error, time::Duration};

use bytes::BytesMut;
use postgres::{
    Client, Config,
    config::Host,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Database, LAYOUT, Row, TABLES, Value, tls};
use crate::{
    MeshError,
    error::{StoreError, postgres_said},
};

/// How long a server is waited for that does not answer.
const CONNECT: Duration = Duration::from_secs(10);

/// Each transaction: where its tables are, how long another command's lock is waited for, and how long a statement may take.
const BEGIN: &str = "BEGIN; SET LOCAL search_path TO fullpipe; SET LOCAL lock_timeout TO '10s'; \
    SET LOCAL statement_timeout TO '60s'";

/// Held while the tables are made, by whoever opens the store first: any number, the same for all.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7355608)";

/// A server; connected only while something is asked: a mesh is measured for hours, and what is quiet is cut off on the way.
pub(super) struct Postgres {
    config: Config,
    connector: MakeRustlsConnect,
    client: Option<Client>,
}

impl Postgres {
    pub(super) fn new(url: &str) -> Result<Self, MeshError> {
        let wrong = |problem: String| MeshError::Address { problem };
        let tls::Asked { url, mode, connector } = tls::asked(url).map_err(wrong)?;
        // What it says names the part that is wrong, and not the URL with its password.
        let mut config: Config = url.parse().map_err(|error| wrong(postgres_said(&error)))?;
        config.ssl_mode(mode).application_name("fullpipe mesh");
        if config.get_user().is_none() {
            return Err(wrong("it names no user".to_owned()));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        // Not where an operating system has none of it.
        config.tcp_user_timeout(Duration::from_secs(60));
        if let (None, Ok(password)) = (config.get_password(), env::var("PGPASSWORD")) {
            config.password(password);
        }
        Ok(Self { config, connector, client: None })
    }

    fn client(&mut self) -> Result<&mut Client, StoreError> {
        self.client.as_mut().ok_or(StoreError::NotBegun)
    }

    fn number(&mut self, sql: &str) -> Result<i64, StoreError> {
        Ok(self.client()?.query_one(sql, &[])?.try_get(0)?)
    }
}

impl Database for Postgres {
    /// Without the password.
    fn name(&self) -> String {
        let host = self.config.get_hosts().first().map_or_else(String::new, |host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        });
        let user = self.config.get_user().unwrap_or_default();
        let port = self.config.get_ports().first().map_or_else(String::new, |port| format!(":{port}"));
        format!("postgres://{user}@{host}{port}/{}", self.config.get_dbname().unwrap_or(user))
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        let mut client = self.config.connect(self.connector.clone())?;
        client.batch_execute(BEGIN)?;
        self.client = Some(client);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.client()?.batch_execute("COMMIT")?;
        self.client = None;
        Ok(())
    }

    /// What a server has of somebody who hangs up is nothing.
    fn roll_back(&mut self) {
        self.client = None;
    }

    fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let rows = self.client()?.query(sql, &values)?;
        rows.iter().map(|row| (0..row.len()).map(|at| Ok(row.try_get::<_, Value>(at)?)).collect()).collect()
    }

    fn prepare(&mut self) -> Result<i64, StoreError> {
        const FOUND: &str = "SELECT count(*) FROM pg_namespace WHERE nspname = 'fullpipe'";
        const HELD: &str = "SELECT count(*) FROM pg_class WHERE relnamespace = \
            (SELECT oid FROM pg_namespace WHERE nspname = 'fullpipe')";
        self.client()?.batch_execute(LOCK)?;
        if self.number(FOUND)? == 0 {
            self.client()?.batch_execute("CREATE SCHEMA fullpipe")?;
        }
        if self.number(HELD)? > 0 {
            let is_ours = self.number("SELECT count(to_regclass('fullpipe.layout'))")? > 0;
            return if is_ours { self.number("SELECT max(version) FROM layout") } else { Ok(0) };
        }
        let tables = TABLES.replace("KEY,", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,");
        let layout = format!("CREATE TABLE layout (version BIGINT NOT NULL); INSERT INTO layout VALUES ({LAYOUT})");
        self.client()?.batch_execute(&format!("{tables} {layout}"))?;
        Ok(LAYOUT)
    }

    fn may_write(&mut self) -> Result<bool, StoreError> {
        const MAY: &str = "SELECT count(*) FROM (VALUES ('runs'), ('directions')) AS needed (name) \
            WHERE has_table_privilege(name, 'INSERT')";
        Ok(self.number(MAY)? == 2)
    }
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Whole(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        <i64 as ToSql>::accepts(kind) || <String as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        if *kind == Type::INT8 {
            i64::from_sql(kind, raw).map(Self::Whole)
        } else {
            String::from_sql(kind, raw).map(Self::Text)
        }
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(kind: &Type) -> bool {
        <i64 as FromSql<'_>>::accepts(kind) || <String as FromSql<'_>>::accepts(kind)
    }
}
