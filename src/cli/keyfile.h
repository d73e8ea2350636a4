/*
 * Key files of options (--config, --preset; options.h says how they look) turned into arguments.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * Append "--key=value" for what the file at path says about tool to out. tables are option tables, each ended by a NULL
 * name, the list by NULL. Repeatable options that argv names already are left out. lenient: keys of group [hone]
 * that no table knows are passed over.
 */
gboolean hn_keyfile_args(const char *path, const char *tool, const GOptionEntry *const *tables, char *const *argv,
                         gboolean lenient, GPtrArray *out, GError **error);

/*
 * Where the preset of this name lies: in presets/ below $HONE_DATADIR, else of ../share/hone seen from the running
 * program, else of the folder it was built to be installed in. An unknown name is HN_ERROR_USAGE and lists those there.
 */
char *hn_preset_path(const char *name, GError **error);

G_END_DECLS
