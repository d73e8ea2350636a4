/*
 * Completion of command lines, as scripts for shells, out of the tables of options.
 */
#pragma once

#include "cli/options.h"

G_BEGIN_DECLS

/* shell: "bash", "zsh" or "fish". g_free. Errors: USAGE: another one. */
char *hn_completion(const HnTool *tool, const char *shell, GError **error);

G_END_DECLS
