-- When a wait was noted, by the same clock as its end. One that was noted later than now was noted before the clock
-- was set back, so that its end says nothing.
ALTER TABLE key_waits ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;
