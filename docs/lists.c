// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * doc-lists TEMPLATE >OUTPUT
 *
 * The lists in the documentation, made from the tables that the programs are made from.  A line of
 * the template that is only @NAME@ is replaced by a list; every other line is copied.
 *
 *	@OPTIONS@     all options of the configuration, by section, for scdoc
 *	@COUNTERS@    all counters, @HISTOGRAMS@ all histograms, for scdoc
 *	@EXAMPLE@     a configuration file with every option commented out
 *	@KEYS@        "section.key" of every option, @LIVE@ of those that change at run time
 *	@VALUES@      branches of a shell's case: the words that an option takes
 */
#include "common/counters.h"
#include "common/histograms.h"
#include "common/util.h"
#include "daemon/config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As text that scdoc neither makes bold nor underlines. */
static void put_scd(const char *text)
{
	for (; *text; text++) {
		if (strchr("\\*_", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void put_words(const char *choices, const char *between)
{
	for (; *choices; choices++)
		if (*choices == '|')
			fputs(between, stdout);
		else
			putchar(*choices);
}

static void options(void)
{
	char range[CONFIG_RANGE_MAX];
	const char *section = "";

	for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
		const struct config_option *o = &config_options[i];

		if (strcmp(section, o->section))
			printf("%s## Section [%s]\n\n", i ? "\n" : "", o->section);
		else
			putchar('\n');
		section = o->section;
		printf("*%s* =\n\t", o->key);
		put_scd(o->text);
		fputs("\n\n\tRange: ", stdout);
		put_scd(config_range(o, range));
		fputs(". Default: ", stdout);
		put_scd(o->def);
		printf(". %s\n",
		       o->live ? "Can change at run time." : "Changes with the next start.");
	}
}

static const char *const units[] = {
	[COUNTER_UNIT_NONE] = "",
	[COUNTER_UNIT_PAGES] = ", pages of 4096 bytes",
	[COUNTER_UNIT_BYTES] = ", bytes",
	[COUNTER_UNIT_NANOSECONDS] = ", nanoseconds",
};

static void counters(void)
{
	for (size_t i = 0; i < COUNTER_COUNT; i++) {
		const struct counter_info *c = &counter_table[i];

		printf("%s*", i ? "\n" : "");
		put_scd(c->name);
		printf("* (%s%s)\n\t", c->kind == COUNTER_KIND_GAUGE ? "gauge" : "counter",
		       units[c->unit]);
		put_scd(c->text);
		putchar('\n');
	}
}

static void histograms(void)
{
	for (size_t i = 0; i < HISTOGRAM_COUNT; i++) {
		const struct histogram_info *h = &histogram_table[i];

		printf("%s*", i ? "\n" : "");
		put_scd(h->name);
		printf("* (histogram%s)\n\t", units[h->unit]);
		put_scd(h->text);
		putchar('\n');
	}
}

static void example(void)
{
	char range[CONFIG_RANGE_MAX];
	const char *section = "";

	for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
		const struct config_option *o = &config_options[i];

		if (strcmp(section, o->section))
			printf("%s[%s]\n", i ? "\n" : "", o->section);
		else
			putchar('\n');
		section = o->section;
		printf("# %s\n# Range: %s.%s\n#%s = %s\n", o->text, config_range(o, range),
		       o->live ? " Can change at run time." : "", o->key, o->def);
	}
}

static void keys_if(bool live_only)
{
	const char *space = "";

	for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
		const struct config_option *o = &config_options[i];

		if (live_only && !o->live)
			continue;
		printf("%s%s.%s", space, o->section, o->key);
		space = "\n";
	}
	putchar('\n');
}

static void keys(void)
{
	keys_if(false);
}

static void live(void)
{
	keys_if(true);
}

static void values(void)
{
	for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
		const struct config_option *o = &config_options[i];

		if (o->type != CONFIG_TYPE_BOOL && o->type != CONFIG_TYPE_CHOICE)
			continue;
		printf("\t%s.%s) echo ", o->section, o->key);
		put_words(o->type == CONFIG_TYPE_BOOL ? "yes|no" : o->choices, " ");
		puts(" ;;");
	}
}

static const struct {
	const char *name;
	void (*put)(void);
} lists[] = {
	{"@OPTIONS@\n", options}, {"@COUNTERS@\n", counters}, {"@HISTOGRAMS@\n", histograms},
	{"@EXAMPLE@\n", example}, {"@KEYS@\n", keys},	      {"@LIVE@\n", live},
	{"@VALUES@\n", values},
};

static void put_line(const char *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (!strcmp(line, lists[i].name)) {
			lists[i].put();
			return;
		}
	fputs(line, stdout);
}

int main(int argc, char **argv)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	FILE *f;

	if (argc != 2) {
		fputs("usage: doc-lists TEMPLATE >OUTPUT\n", stderr);
		return 2;
	}
	f = fopen(argv[1], "re");
	if (!f) {
		fprintf(stderr, "doc-lists: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	while (getline(&line, &size, f) >= 0)
		put_line(line);
	if (ferror(f) || fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "doc-lists: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fclose(f);
	return 0;
}
