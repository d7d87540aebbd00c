/* SPDX-License-Identifier: BSD-3-Clause */
#include "datatypes.h"

namespace zc::instrument {

using llvm::dyn_cast;

std::uint64_t size_of_datatype(const function &in, const clang::Expr *type)
{
    clang::Expr::EvalResult value;
    if (type->EvaluateAsInt(value, in.context())) { /* MPICH's handles say it */
        const auto number = value.Val.getInt().getZExtValue();
        return (number & 0xff000000) == 0x4c000000 ? number >> 8 & 0xff : 0;
    }
    static const std::map<std::string, std::uint64_t> of_open_mpi = {
        {"ompi_mpi_byte", 1},          {"ompi_mpi_char", 1},     {"ompi_mpi_signed_char", 1},
        {"ompi_mpi_unsigned_char", 1}, {"ompi_mpi_short", 2},    {"ompi_mpi_unsigned_short", 2},
        {"ompi_mpi_int", 4},           {"ompi_mpi_unsigned", 4}, {"ompi_mpi_float", 4},
        {"ompi_mpi_long", 8},          {"ompi_mpi_double", 8},   {"ompi_mpi_unsigned_long", 8},
        {"ompi_mpi_long_long_int", 8}};
    const auto *address = dyn_cast<clang::UnaryOperator>(type->IgnoreParenCasts());
    const auto *reference =
        address ? dyn_cast<clang::DeclRefExpr>(address->getSubExpr()->IgnoreParens()) : nullptr;
    const auto found =
        of_open_mpi.find(reference ? reference->getDecl()->getNameAsString() : std::string());
    return found == of_open_mpi.end() ? 0 : found->second;
}

} // namespace zc::instrument
