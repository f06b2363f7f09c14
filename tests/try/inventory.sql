-- SPDX-License-Identifier: GPL-2.0-or-later
-- Builds an inventory of 3.6 million items in memory, adds it up, looks items up at random and
-- changes some.  About 280 MB; what it prints is the same on every machine.
PRAGMA journal_mode=off;
PRAGMA temp_store=memory;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, note TEXT, price INTEGER, day INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3600000)
INSERT INTO item SELECT
	i,
	'item-' || ((i * 7919) % 3600000),
	printf('%s of lot %d, shelf %d, checked by %s',
		CASE i % 5 WHEN 0 THEN 'box' WHEN 1 THEN 'crate' WHEN 2 THEN 'pallet'
			WHEN 3 THEN 'barrel' ELSE 'bag' END,
		(i * 31) % 9973, i % 417,
		CASE i % 3 WHEN 0 THEN 'Ada' WHEN 1 THEN 'Grace' ELSE 'Edsger' END),
	(i * 104729) % 100003,
	i % 9000
FROM n;
SELECT count(*), sum(price), min(name), max(note) FROM item;
SELECT sum(b.price), max(b.name)
	FROM item a JOIN item b ON b.id = (a.id * 1299709) % 3600000 + 1 WHERE a.id % 120 = 0;
UPDATE item SET price = price + 1 WHERE id % 7 = 0;
SELECT sum(price), sum(length(note)), sum(day) FROM item;
