/*
 * What hone-inspect --weights and hone-profile --weights report of a weight.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "perf/weight_stats.h"

/* As schemas/profile.json and schemas/inspect.json describe it; numbers that are not finite are null. */
JsonObject *hn_tool_weight_json(const HnWeightReport *w);
