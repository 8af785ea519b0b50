/* A strict reader of rank tables, version 1.0 to 1.2: it takes strings only. */
#include "comm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const char *at;
	const char *key; /* of the present value */
	int devices, servers, depth;
	bool bare, ranked[SIM_RANKS];
	char version[16], status[32], count[16];
};

static void blanks(struct scan *s)
{
	while (isspace((unsigned char)*s->at))
		s->at++;
}

static bool string(struct scan *s, char *to, size_t size)
{
	blanks(s);
	if (*s->at != '"')
		return false;
	size_t n = 0;
	for (s->at++; *s->at != '"'; s->at++) {
		if (*s->at == 0 || *s->at == '\\')
			return false;
		if (n + 1 < size)
			to[n++] = *s->at;
	}
	to[n] = 0;
	s->at++;
	return true;
}

static void scalar(struct scan *s, const char *key, const char *value)
{
	if (strcmp(key, "version") == 0)
		snprintf(s->version, sizeof s->version, "%.15s", value);
	else if (strcmp(key, "status") == 0)
		snprintf(s->status, sizeof s->status, "%.31s", value);
	else if (strcmp(key, "server_count") == 0)
		snprintf(s->count, sizeof s->count, "%.15s", value);
	else if (strcmp(key, "rank_id") == 0) {
		long r = strtol(value, NULL, 10);
		if (r >= 0 && r < SIM_RANKS)
			s->ranked[r] = true;
	} else if (strcmp(key, "device_id") == 0)
		s->devices++;
}

static bool value(struct scan *s, const char *key);

static bool members(struct scan *s, const char *key, char close)
{
	s->at++;
	for (blanks(s); *s->at != close; blanks(s)) {
		char name[64];
		snprintf(name, sizeof name, "%s", key);
		if (close == '}') {
			if (!string(s, name, sizeof name))
				return false;
			blanks(s);
			if (*s->at++ != ':')
				return false;
		} else if (strcmp(key, "server_list") == 0 && s->depth == 2) {
			s->servers++;
		}
		if (!value(s, name))
			return false;
		blanks(s);
		if (*s->at == ',')
			s->at++;
		else if (*s->at != close)
			return false;
	}
	s->at++;
	return true;
}

static bool value(struct scan *s, const char *key)
{
	char text[4096];
	blanks(s);
	if (*s->at == '{' || *s->at == '[') {
		bool ok = ++s->depth < 16 && members(s, key, *s->at == '{' ? '}' : ']');
		s->depth--;
		return ok;
	}
	if (string(s, text, sizeof text)) {
		scalar(s, key, text);
		return true;
	}
	s->bare = true;
	while (*s->at != 0 && strchr(",]} \n\t\r", *s->at) == NULL)
		s->at++;
	return true;
}

static HcclResult bad(const char *code, const char *path, const char *why)
{
	ascendsim_message("%s: the rank table %s: %s", code, path, why);
	return HCCL_E_PARA;
}

HcclResult sim_check_table(const char *path, uint32_t rank, uint32_t *ranks, char *identity, size_t size)
{
	static char text[1 << 20];
	if (path == NULL || strlen(path) >= 4096)
		return HCCL_E_PARA;
	FILE *f = fopen(path, "r");
	if (f == NULL) {
		ascendsim_message("EI0004: the rank table %s cannot be opened", path);
		return HCCL_E_OPEN_FILE_FAILURE;
	}
	size_t n = fread(text, 1, sizeof text - 1, f);
	text[n] = 0;
	fclose(f);
	struct scan s = { .at = text };
	if (!value(&s, "") || s.devices == 0)
		return bad("EI0004", path, "no JSON, or no devices");
	if (s.bare)
		return bad("EI0017", path, "a value is no string");
	if (s.version[0] != '1' || s.version[1] != '.')
		return bad("EI0014", path, "no version of 1.x");
	if (strcmp(s.status, "completed") != 0)
		return bad("EI0004", path, "its status is not completed");
	if (atoi(s.count) != s.servers && strcmp(s.version, "1.2") != 0)
		return bad("EI0004", path, "server_count is not the length of server_list");
	for (int r = 0; r < s.devices; r++)
		if (!s.ranked[r])
			return bad("EI0004", path, "a rank_id is missing");
	if (rank >= (uint32_t)s.devices)
		return bad("EI0004", path, "this rank is not in it");
	unsigned long hash = 5381;
	for (size_t i = 0; i < n; i++)
		hash = hash * 33 + (unsigned char)text[i];
	const char *job = getenv("ASCENDSIM_JOB"); /* tells jobs with one table apart */
	snprintf(identity, size, "ascendsim-%lx-%s", hash, job == NULL ? "" : job);
	*ranks = (uint32_t)s.devices;
	return 0;
}
