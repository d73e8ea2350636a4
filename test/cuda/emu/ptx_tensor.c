#include "ptx_each.h"

const PtxEntry ptx_tensor_entries[] = {
    { NULL, NULL, NULL, NULL },
};
