//! The store in an SQLite file.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ToSql, params_from_iter, types};

use super::{Database, LAYOUT, Row, TABLES, Value};
use crate::{MeshError, error::StoreError};

/// How long another command that writes is waited for.
const WAIT: Duration = Duration::from_secs(10);

/// An open file.
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
}

impl Sqlite {
    pub(super) fn open(path: &Path) -> Result<Self, MeshError> {
        let store = path.display().to_string();
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|source| MeshError::Folder { store: store.clone(), source })?;
        }
        let failed = |source: rusqlite::Error| MeshError::Store { operation: "opening", store, source: source.into() };
        let connect = || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(WAIT)?;
            connection.execute_batch("PRAGMA foreign_keys = ON")?;
            Ok(connection)
        };
        Ok(Self { connection: connect().map_err(failed)?, path: path.to_owned() })
    }
}

impl Database for Sqlite {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// With the right to write from the start: whoever writes too is waited for here.
    fn begin(&mut self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn roll_back(&mut self) {
        // Where nothing was begun there is nothing to take back.
        drop(self.connection.execute_batch("ROLLBACK"));
    }

    fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        let mut query = self.connection.prepare_cached(sql)?;
        let columns = query.column_count();
        let rows = query.query_map(params_from_iter(values), |row| (0..columns).map(|at| row.get(at)).collect())?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn prepare(&mut self) -> Result<i64, StoreError> {
        let number = |sql: &str| self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let found = number("PRAGMA user_version")?;
        if (found, number("SELECT count(*) FROM sqlite_schema")?) != (0, 0) {
            return Ok(found);
        }
        let tables = TABLES.replace("KEY,", "INTEGER PRIMARY KEY AUTOINCREMENT,");
        self.connection.execute_batch(&format!("{tables} PRAGMA user_version = {LAYOUT};"))?;
        Ok(LAYOUT)
    }

    /// To begin was to write.
    fn may_write(&mut self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<types::ToSqlOutput<'_>> {
        match self {
            Self::Null => types::Null.to_sql(),
            Self::Whole(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
        }
    }
}

impl types::FromSql for Value {
    fn column_result(value: types::ValueRef<'_>) -> types::FromSqlResult<Self> {
        Ok(match value {
            types::ValueRef::Null => Self::Null,
            types::ValueRef::Integer(number) => Self::Whole(number),
            types::ValueRef::Text(_) => Self::Text(value.as_str()?.to_owned()),
            types::ValueRef::Real(_) | types::ValueRef::Blob(_) => return Err(types::FromSqlError::InvalidType),
        })
    }
}
