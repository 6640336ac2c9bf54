-- The first format. docs/store.md explains it; a change is a new step beside this file, never an edit.
PRAGMA application_id = 0x76726679;

CREATE TABLE runs (
    seq          INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    job          BLOB    NOT NULL,
    input_digest BLOB    NOT NULL,
    input        TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    settings     TEXT    NOT NULL,
    selected     INTEGER NOT NULL,
    started      INTEGER NOT NULL,
    ended        INTEGER,
    ending       TEXT,
    unfinished   INTEGER NOT NULL,
    executions   INTEGER NOT NULL,
    summary      TEXT
);
CREATE INDEX runs_by_job ON runs (job, seq);

CREATE TABLE executions (
    run     INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    pid     INTEGER NOT NULL,
    started INTEGER NOT NULL,
    ended   INTEGER,
    ending  TEXT,
    PRIMARY KEY (run, number)
);

-- Apart from `runs`, so that the writer's update does not rewrite the settings.
CREATE TABLE progress (
    run  INTEGER PRIMARY KEY,
    json TEXT NOT NULL
);

CREATE TABLE labels (
    id    INTEGER PRIMARY KEY,
    label TEXT NOT NULL UNIQUE
);

-- The long columns stand last: a reader that stops before `raw` does not touch its overflow pages.
CREATE TABLE attempts (
    id           INTEGER PRIMARY KEY,
    ending       INTEGER NOT NULL,
    shadowed     INTEGER NOT NULL,
    hash         BLOB    NOT NULL,
    label        INTEGER NOT NULL,
    http_status  INTEGER,
    started      INTEGER NOT NULL,
    millis       INTEGER NOT NULL,
    input        INTEGER,
    cached_input INTEGER,
    cache_write  INTEGER,
    output       INTEGER,
    reasoning    INTEGER,
    estimated    INTEGER NOT NULL,
    cost         INTEGER,
    possible     INTEGER,
    repair       INTEGER NOT NULL,
    extracted    INTEGER NOT NULL,
    batch        INTEGER,
    request_id   TEXT,
    error        TEXT,
    answer       TEXT,
    raw          BLOB
);
CREATE UNIQUE INDEX attempts_valid  ON attempts (hash) WHERE ending = 0 AND shadowed = 0;
CREATE INDEX        attempts_failed ON attempts (hash) WHERE ending BETWEEN 1 AND 99;
CREATE INDEX        attempts_closed ON attempts (id, ending) WHERE ending < 100;

CREATE TABLE bodies (
    id   INTEGER PRIMARY KEY,
    body BLOB NOT NULL
);

CREATE TABLE rows (
    id     INTEGER PRIMARY KEY,
    kind   INTEGER NOT NULL,
    source INTEGER,
    error  TEXT
);

-- What executions that died may have spent, and what a person has forgiven of it.
CREATE TABLE ledger (
    run      INTEGER PRIMARY KEY,
    possible INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    forgiven INTEGER NOT NULL
);

-- What an execution under a ceiling may spend without asking the disk again. It is gone when the execution ends.
CREATE TABLE leases (
    run   INTEGER PRIMARY KEY,
    money INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    boot  TEXT    NOT NULL
);

CREATE TABLE learned (
    endpoint TEXT NOT NULL,
    model    TEXT NOT NULL,
    json     TEXT NOT NULL,
    PRIMARY KEY (endpoint, model)
);

CREATE TABLE answered (
    endpoint TEXT NOT NULL,
    model    TEXT NOT NULL,
    label    TEXT NOT NULL,
    PRIMARY KEY (endpoint, model, label)
);

CREATE TABLE key_waits (
    endpoint TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (endpoint, label)
);
