-- Decisions of people on rows to review, by the content that they have seen. The newest one of a content counts,
-- older ones are its history.
CREATE TABLE decisions (
    id       INTEGER PRIMARY KEY,
    content  BLOB    NOT NULL,
    positive INTEGER NOT NULL,
    reviewer TEXT    NOT NULL,
    note     TEXT    NOT NULL,
    run      TEXT    NOT NULL,
    row      INTEGER NOT NULL,
    decided  INTEGER NOT NULL
);
CREATE INDEX decisions_by_content ON decisions (content, id);
