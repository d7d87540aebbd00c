/* SPDX-License-Identifier: BSD-3-Clause */
#include "openssl_library.h"

#include <openssl/crypto.h>

namespace zc::holder {

OSSL_LIB_CTX *openssl_library()
{
    static OSSL_LIB_CTX *const own = OSSL_LIB_CTX_new();
    return own;
}

} // namespace zc::holder
