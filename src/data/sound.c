#include "data/sound.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "data/codecs.h"

#define LENGTH_UNKNOWN 0x7ffff000 /* of a chunk, from here on: nobody went back to say it */
#define MOST_CHANNELS 64

static HnSound *sound_new(int64_t frames, int channels, int rate, HnBudget *budget, GError **error)
{
    gsize n;
    if (frames < 0 || !hn_mul_size((gsize)frames, (gsize)channels, &n)) {
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "a sound of %" PRId64 " frames is too long", frames);
        return NULL;
    }
    float *data = hn_budget_alloc_n(budget, n, sizeof *data, error);
    if (data == NULL)
        return NULL;
    HnSound *s = g_new(HnSound, 1);
    *s = (HnSound){ frames, channels, rate, data, budget != NULL ? hn_budget_ref(budget) : NULL };
    return s;
}

void hn_sound_free(HnSound *s)
{
    if (s == NULL)
        return;
    hn_budget_free(s->budget, s->data);
    if (s->budget != NULL)
        hn_budget_unref(s->budget);
    g_free(s);
}

gboolean hn_sound_is(gconstpointer data, gsize size)
{
    static const char *const first[] = { "RIFF", "RF64", "fLaC", "OggS", "FORM" };
    for (gsize i = 0; i < G_N_ELEMENTS(first); i++)
        if (size >= 12 && memcmp(data, first[i], 4) == 0)
            return memcmp(data, "RIFF", 4) != 0 || memcmp((const guint8 *)data + 8, "WAVE", 4) == 0;
    return FALSE;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

#ifndef HN_HAVE_SNDFILE

HnSound *hn_sound_read(G_GNUC_UNUSED const guint8 *data, G_GNUC_UNUSED gsize size, const char *name,
                       G_GNUC_UNUSED HnBudget *budget, GError **error)
{
    g_set_error(error, HN_ERROR, HN_ERROR_UNSUPPORTED,
                "'%s' is a sound file, and this hone was built without libsndfile", name);
    return NULL;
}

#else

#define MOST_FRAMES_A_BYTE 4096 /* of a compressed file: FLAC's longest runs of one value stay below */
#define STRETCH 65536           /* frames read at once */

typedef struct {
    const guint8 *data;
    sf_count_t size, at;
} Bytes;

static sf_count_t bytes_size(void *user)
{
    return ((Bytes *)user)->size;
}

static sf_count_t bytes_seek(sf_count_t to, int whence, void *user)
{
    Bytes *b = user;
    sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? b->at : b->size;
    sf_count_t at;
    if (!__builtin_add_overflow(from, to, &at) && at >= 0 && at <= b->size)
        b->at = at;
    return b->at;
}

static sf_count_t bytes_read(void *to, sf_count_t n, void *user)
{
    Bytes *b = user;
    n = CLAMP(n, 0, b->size - b->at);
    memcpy(to, b->data + b->at, (gsize)n);
    b->at += n;
    return n;
}

static sf_count_t bytes_write(G_GNUC_UNUSED const void *from, G_GNUC_UNUSED sf_count_t n, G_GNUC_UNUSED void *user)
{
    return 0;
}

static sf_count_t bytes_tell(void *user)
{
    return ((Bytes *)user)->at;
}

static gboolean check_head(const SF_INFO *info, gsize size, const char *name, GError **error)
{
    if (info->channels > 0 && info->channels <= MOST_CHANNELS && info->samplerate > 0 && info->frames > 0 &&
        (guint64)info->frames <= (guint64)size * MOST_FRAMES_A_BYTE)
        return TRUE;
    g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                "'%s' says that it has %" PRId64 " frames of %d channels at %d a second", name, (int64_t)info->frames,
                info->channels, info->samplerate);
    return FALSE;
}

static gboolean read_frames(const HnSndfile *lib, SNDFILE *file, HnSound *s, const char *name, GError **error)
{
    for (int64_t at = 0; at < s->frames;) {
        const int64_t n = MIN(STRETCH, s->frames - at);
        const int64_t got = lib->sf_readf_float(file, s->data + at * s->channels, n);
        if (got <= 0) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' ends after %" PRId64 " of %" PRId64 " frames", name, at,
                        s->frames);
            return FALSE;
        }
        at += got;
    }
    for (int64_t i = 0; i < s->frames * s->channels; i++)
        if (!isfinite(s->data[i])) {
            g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s': frame %" PRId64 " is not a finite number", name,
                        i / s->channels);
            return FALSE;
        }
    return TRUE;
}

/* Bytes of sound that a WAV file says that it has, and has not. 0 also where it was written to a pipe, before its
 * length was known. */
static gsize missing_bytes(const guint8 *data, gsize size)
{
    gsize at = 12; /* behind "RIFF", its length and "WAVE" */
    if (size < at || memcmp(data, "RIFF", 4) != 0)
        return 0;
    while (at <= size && size - at >= 8) {
        const gsize left = size - at - 8;
        const gsize said =
            data[at + 4] | (gsize)data[at + 5] << 8 | (gsize)data[at + 6] << 16 | (gsize)data[at + 7] << 24;
        if (memcmp(data + at, "data", 4) == 0)
            return said > left && said < LENGTH_UNKNOWN ? said - left : 0;
        if (said > left)
            return 0;
        at += 8 + said + said % 2;
    }
    return 0;
}

HnSound *hn_sound_read(const guint8 *data, gsize size, const char *name, HnBudget *budget, GError **error)
{
    SF_VIRTUAL_IO io = { bytes_size, bytes_seek, bytes_read, bytes_write, bytes_tell };
    Bytes bytes = { data, (sf_count_t)size, 0 };
    SF_INFO info = { 0 };
    const HnSndfile *lib = hn_sndfile(error);
    if (lib == NULL) {
        g_prefix_error(error, "'%s': ", name);
        return NULL;
    }
    const gsize missing = missing_bytes(data, size);
    if (missing > 0) {
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT,
                    "'%s' is cut short: %" G_GSIZE_FORMAT " bytes of its sound are missing", name, missing);
        return NULL;
    }
    SNDFILE *file = lib->sf_open_virtual(&io, SFM_READ, &info, &bytes);
    if (file == NULL) {
        g_autofree char *reason = g_strdup(lib->sf_strerror(NULL));
        g_strdelimit(reason, "\n\r", ' ');
        const gsize n = strlen(g_strchomp(reason));
        if (n > 0 && reason[n - 1] == '.')
            reason[n - 1] = '\0';
        g_set_error(error, HN_ERROR, HN_ERROR_FORMAT, "'%s' is no valid sound file: %s", name, reason);
        return NULL;
    }
    g_autoptr(HnSound) s = NULL;
    gboolean ok = check_head(&info, size, name, error) &&
                  (s = sound_new(info.frames, info.channels, info.samplerate, budget, error)) != NULL &&
                  read_frames(lib, file, s, name, error);
    lib->sf_close(file);
    return ok ? g_steal_pointer(&s) : NULL;
}

#endif

/* --- channels and rate -------------------------------------------------------------------------------------------- */

HnSound *hn_sound_to_channels(HnSound *s, int channels, const char *name, GError **error)
{
    HnSound *t = NULL;
    if (s->channels == channels)
        return s;
    if (s->channels != 1 && channels != 1)
        g_set_error(error, HN_ERROR, HN_ERROR_SHAPE, "'%s' has %d channels, which do not become %d", name, s->channels,
                    channels);
    else
        t = sound_new(s->frames, channels, s->rate, s->budget, error);
    for (int64_t i = 0; t != NULL && i < s->frames; i++) {
        double sum = 0;
        for (int c = 0; c < s->channels; c++)
            sum += s->data[i * s->channels + c];
        for (int c = 0; c < channels; c++)
            t->data[i * channels + c] = (float)(sum / s->channels);
    }
    hn_sound_free(s);
    return t;
}

#define CROSSINGS 6 /* zero crossings of the sinc to either side */
#define ROLLOFF 0.99

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The kernel at t, in zero crossings. */
static double kernel(double t)
{
    if (fabs(t) >= CROSSINGS)
        return 0;
    const double window = cos(t * G_PI / CROSSINGS / 2), x = t * G_PI;
    return (x == 0 ? 1 : sin(x) / x) * window * window;
}

/* Result i is at i * from / to of s: the sum over frames within the kernel's reach. */
static void resample_frame(const HnSound *s, HnSound *t, int64_t i, int64_t from, int64_t to)
{
    const double lower = (double)MIN(from, to) * ROLLOFF / (double)from, reach = CROSSINGS / lower;
    const int64_t whole = i / to * from + i % to * from / to; /* floor, and what is left of it */
    const double part = (double)(i % to * from % to) / (double)to;
    const int64_t first = MAX(whole - (int64_t)ceil(reach), 0);
    const int64_t last = MIN(whole + (int64_t)ceil(reach) + 1, s->frames - 1);
    for (int c = 0; c < s->channels; c++) {
        double sum = 0;
        for (int64_t k = first; k <= last; k++)
            sum += s->data[k * s->channels + c] * kernel(((double)(k - whole) - part) * lower);
        t->data[i * s->channels + c] = (float)(sum * lower);
    }
}

HnSound *hn_sound_to_rate(HnSound *s, int rate, GError **error)
{
    if (s->rate == rate)
        return s;
    const int64_t d = common_divisor(s->rate, rate), from = s->rate / d, to = rate / d;
    int64_t frames;
    HnSound *t = NULL;
    if (!hn_mul_i64(s->frames, to, &frames))
        g_set_error(error, HN_ERROR, HN_ERROR_BUDGET, "a sound of %" PRId64 " frames is too long to resample",
                    s->frames);
    else
        t = sound_new((frames + from - 1) / from, s->channels, rate, s->budget, error);
    for (int64_t i = 0; t != NULL && i < t->frames; i++)
        resample_frame(s, t, i, from, to);
    hn_sound_free(s);
    return t;
}
