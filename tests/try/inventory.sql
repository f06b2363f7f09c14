-- SPDX-License-Identifier: GPL-2.0-or-later
-- Builds an inventory of 2.5 million items in memory, indexes it, and asks and changes it at random.
-- About 390 MB; what it prints is the same on every machine.
PRAGMA journal_mode=off; PRAGMA temp_store=memory;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, note TEXT, price INTEGER, day TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2500000)
INSERT INTO item SELECT i, 'item-'||((i*7919)%2500000), printf('%s of lot %d, shelf %d, checked by %s', CASE i%5 WHEN 0 THEN 'box' WHEN 1 THEN 'crate' WHEN 2 THEN 'pallet' WHEN 3 THEN 'barrel' ELSE 'bag' END, (i*31)%9973, i%417, CASE i%3 WHEN 0 THEN 'Ada' WHEN 1 THEN 'Grace' ELSE 'Edsger' END), (i*104729)%100003, date('2000-01-01', '+'||(i%9000)||' days') FROM n;
CREATE INDEX by_name ON item(name);
SELECT count(*), sum(price), min(name), max(note) FROM item;
SELECT day, count(*), sum(price) FROM item GROUP BY day ORDER BY 3 DESC LIMIT 5;
SELECT sum(a.price) FROM item a JOIN item b ON b.name = 'item-'||((a.id*13)%2500000) WHERE a.id % 50 = 0;
UPDATE item SET price = price + 1 WHERE id % 7 = 0;
SELECT sum(price), sum(length(note)) FROM item;
