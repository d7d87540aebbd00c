/* SPDX-License-Identifier: BSD-3-Clause */
#include "layout.h"

#include "known_calls.h"
#include "program.h"

#include <algorithm>
#include <clang/AST/Decl.h>
#include <clang/AST/RecordLayout.h>
#include <regex>
#include <set>

namespace zc::instrument {

namespace {

std::string basic_of(const clang::ASTContext &context, clang::QualType type)
{
    type = type.getCanonicalType().getUnqualifiedType();
    if (const auto *complex = type->getAs<clang::ComplexType>()) {
        const auto size = context.getTypeSize(complex->getElementType());
        return size == 32 ? "CFLOAT" : size == 64 ? "CDOUBLE" : "CLDOUBLE";
    }
    if (const auto *enumeration = type->getAs<clang::EnumType>())
        type = enumeration->getDecl()->getIntegerType().getCanonicalType();
    const auto *builtin = type->getAs<clang::BuiltinType>();
    if (!builtin)
        return {};
    switch (builtin->getKind()) {
    case clang::BuiltinType::Bool:
        return "BOOL";
    case clang::BuiltinType::Char_S:
    case clang::BuiltinType::Char_U:
        return "CHAR";
    case clang::BuiltinType::SChar:
        return "SCHAR";
    case clang::BuiltinType::UChar:
        return "UCHAR";
    case clang::BuiltinType::Short:
        return "SHORT";
    case clang::BuiltinType::UShort:
        return "USHORT";
    case clang::BuiltinType::Int:
        return "INT";
    case clang::BuiltinType::UInt:
        return "UINT";
    case clang::BuiltinType::Long:
        return "LONG";
    case clang::BuiltinType::ULong:
        return "ULONG";
    case clang::BuiltinType::LongLong:
        return "LLONG";
    case clang::BuiltinType::ULongLong:
        return "ULLONG";
    case clang::BuiltinType::Float:
        return "FLOAT";
    case clang::BuiltinType::Double:
        return "DOUBLE";
    case clang::BuiltinType::LongDouble:
        return "LDOUBLE";
    default:
        return {};
    }
}

/* Handles that are numbers are not what other numbers are, nor are pointers to them. */
std::string key_of(clang::QualType type)
{
    if (auto name = layouts::opaque(type); !name.empty())
        return name;
    const auto *pointer = type->getAs<clang::PointerType>();
    const auto to = pointer ? key_of(pointer->getPointeeType()) : "";
    return to.rfind("MPI_", 0) == 0
               ? to + " *"
               : layouts::name_of(type.getCanonicalType().getUnqualifiedType());
}

bool contains_pointer(clang::QualType type)
{
    type = type.getCanonicalType();
    if (type->isPointerType() || !layouts::opaque(type).empty())
        return true;
    if (const auto *array = type->getAsArrayTypeUnsafe())
        return contains_pointer(array->getElementType());
    const auto *record = type->getAsRecordDecl();
    if (!record)
        return false;
    for (const auto *member : record->fields())
        if (!layouts::opaque(member->getType()).empty() || contains_pointer(member->getType()))
            return true;
    return false;
}

/* Is it a struct with an array of one element, or none, at its end? There may be more of them
 * behind it, and they may be where others of these structs would have gaps. */
bool ends_with_array(const clang::ASTContext &context, clang::QualType type)
{
    const auto *record = type->getAsRecordDecl();
    record = record ? record->getDefinition() : nullptr;
    const clang::FieldDecl *last = nullptr;
    if (record && record->isStruct())
        for (const auto *member : record->fields())
            last = member;
    const auto *array = last ? context.getAsConstantArrayType(last->getType()) : nullptr;
    return array && array->getSize().getZExtValue() <= 1;
}

const clang::RecordDecl *struct_of(clang::QualType type)
{
    while (const auto *array = type->getAsArrayTypeUnsafe())
        type = array->getElementType();
    const auto *record = type->getAsRecordDecl();
    return record ? record->getDefinition() : nullptr;
}

/* With the structs in it. */
void add_structs(const clang::RecordDecl *record, std::set<std::string> &to)
{
    if (!record || !to.insert(layouts::name_of(record->getASTContext()
                                                   .getRecordType(record)
                                                   .getCanonicalType()
                                                   .getUnqualifiedType()))
                        .second)
        return;
    for (const auto *member : record->fields())
        add_structs(struct_of(member->getType()), to);
}

/* Is @cast, of a pointer to a struct to one to void, for a function of the library? */
bool is_for_library(const program &all, const function &in, const clang::CastExpr *cast)
{
    const auto *call = llvm::dyn_cast_or_null<clang::CallExpr>(
        in.parents->getParentIgnoreParenCasts(const_cast<clang::CastExpr *>(cast)));
    const auto *callee = call ? callee_of(call) : nullptr;
    return callee && !all.find(callee) && find_known(callee->getNameAsString());
}

const std::map<std::string, std::string> kCannotMove = {
    {"FILE", "a FILE, which does not move"}, {"_IO_FILE", "a FILE, which does not move"},
    {"__va_list_tag", "a va_list"},          {"__jmp_buf_tag", "a jmp_buf"},
    {"DIR", "a directory that is open"},     {"pthread_t", "a thread"},
    {"pthread_mutex_t", "a mutex"},
};

} // namespace

/* Unnamed types are called by where they are, without the folder. */
std::string layouts::name_of(clang::QualType type)
{
    static const std::regex folder(R"( at [^ )]*/)");
    return std::regex_replace(type.getAsString(), folder, " at ");
}

std::string layouts::opaque(clang::QualType type)
{
    static const std::set<std::string> names = {
        "MPI_Comm", "MPI_Datatype", "MPI_Op",      "MPI_Group",      "MPI_Info",
        "MPI_Win",  "MPI_File",     "MPI_Request", "MPI_Errhandler", "MPI_Message"};
    while (!type.isNull()) {
        if (const auto *alias = type->getAs<clang::TypedefType>()) {
            const auto name = alias->getDecl()->getNameAsString();
            if (names.count(name))
                return name;
            type = alias->desugar();
            continue;
        }
        return {};
    }
    return {};
}

clang::QualType layouts::element_of(const clang::ASTContext &context, clang::QualType type)
{
    while (opaque(type).empty()) {
        const auto *array = context.getAsArrayType(type);
        if (!array)
            break;
        type = array->getElementType();
    }
    return type;
}

void layouts::refuse(const std::string &why)
{
    if (why_.empty())
        why_ = why;
}

void layouts::add_pointer(const clang::ASTContext &context, clang::QualType type,
                          std::uint64_t offset, std::uint64_t count, const std::string &name,
                          layout &to)
{
    const auto target = type->getPointeeType();
    int number = -1;
    const auto *record = target->getAsRecordDecl();
    if (const auto known = kCannotMove.find(record ? record->getNameAsString() : "");
        known != kCannotMove.end())
        refuse(name + " leads to " + known->second);
    else if (target->isVoidType())
        refuse(name + " is a pointer to void: what it leads to is not known");
    else if (const auto *elsewhere = record && program_ && target->isIncompleteType()
                                         ? program_->definition_of(record)
                                         : nullptr)
        number = number_of(elsewhere->getASTContext(),
                           elsewhere->getASTContext().getRecordType(elsewhere), name);
    else if (target->isIncompleteType())
        refuse(name + " is a pointer to the incomplete type " + name_of(target));
    else if (!target->isFunctionType())
        number = number_of(context, element_of(context, target), name);
    to.fields.push_back(
        {offset, count, field::kind::pointer, number, {}, context.getTypeSize(type) / 8});
}

void layouts::add_record(const clang::ASTContext &context, const clang::RecordDecl *record,
                         clang::QualType type, std::uint64_t offset, std::uint64_t count,
                         const std::string &name, layout &to)
{
    const std::uint64_t size = context.getTypeSizeInChars(type).getQuantity();
    record = record->getDefinition();
    if (const auto found = kCannotMove.find(record ? record->getNameAsString() : "");
        found != kCannotMove.end()) {
        refuse(name + " is or leads to " + found->second);
        return;
    }
    if (!record) {
        refuse(name + " has the incomplete type " + name_of(type));
        return;
    }
    if (program_ && program_->has_other_definitions(record)) {
        refuse(name + " has the type " + name_of(type) +
               ", which is another one in another source");
        return;
    }
    if (record->isUnion()) {
        if (contains_pointer(type))
            refuse(name + " is a union with pointers or handles: which of its members is valid "
                          "is not known");
        to.fields.push_back({offset, count * size, field::kind::basic, -1, "BYTE", 1});
        return;
    }
    if (record->hasFlexibleArrayMember())
        refuse(name + " ends with an array without a length");
    if (count > 1) {
        to.fields.push_back(
            {offset, count, field::kind::record, number_of(context, type, name), {}, size});
        return;
    }
    const auto &places = context.getASTRecordLayout(record);
    unsigned index = 0;
    std::uint64_t bits_from = 0, bits_to = 0;
    const auto end_bits = [&] {
        if (bits_to > bits_from)
            to.fields.push_back(
                {bits_from, bits_to - bits_from, field::kind::basic, -1, "BYTE", 1});
        bits_from = bits_to = 0;
    };
    for (const auto *member : record->fields()) {
        const auto bit = places.getFieldOffset(index++);
        if (member->isBitField()) {
            const auto from = offset + bit / 8,
                       until = offset + (bit + member->getBitWidthValue(context) + 7) / 8;
            if (bits_to <= bits_from)
                bits_from = from;
            bits_to = until;
            continue;
        }
        end_bits();
        if (streams_.count(program::key(member))) {
            to.fields.push_back({offset + bit / 8, 1, field::kind::handle, -1, "FILE *",
                                 context.getTypeSize(member->getType()) / 8});
            continue;
        }
        const auto first = to.fields.size();
        add(context, member->getType(), offset + bit / 8, 1, name + "." + member->getNameAsString(),
            to);
        if (persistent_.count(program::key(member)) && to.fields.size() > first)
            to.fields.back().what = field::kind::handle;
    }
    end_bits();
}

void layouts::add(const clang::ASTContext &context, clang::QualType type, std::uint64_t offset,
                  std::uint64_t count, const std::string &name, layout &to)
{
    const auto handle = opaque(type);
    if (!handle.empty()) {
        const auto what = handle == "MPI_Request" ? field::kind::request : field::kind::handle;
        to.fields.push_back({offset, count, what, -1, handle, context.getTypeSize(type) / 8});
        return;
    }
    if (const auto *alias = type->getAs<clang::TypedefType>())
        if (const auto found = kCannotMove.find(alias->getDecl()->getNameAsString());
            found != kCannotMove.end())
            refuse(name + " is or leads to " + found->second);
    if (const auto *array = context.getAsConstantArrayType(type)) {
        add(context, array->getElementType(), offset, count * array->getSize().getZExtValue(), name,
            to);
        return;
    }
    if (const auto *atomic = type->getAs<clang::AtomicType>())
        type = atomic->getValueType();
    const auto *pointer =
        type->getAs<clang::PointerType>(); /* with the names of what it leads to */
    type = type.getCanonicalType();
    if (const auto basic = basic_of(context, type); !basic.empty())
        to.fields.push_back(
            {offset, count, field::kind::basic, -1, basic, context.getTypeSize(type) / 8});
    else if (pointer)
        add_pointer(context, clang::QualType(pointer, 0), offset, count, name, to);
    else if (const auto *record = type->getAsRecordDecl())
        add_record(context, record, type, offset, count, name, to);
    else if (context.getAsArrayType(type) == nullptr)
        refuse(name + " has a type that is not known: " + name_of(type));
}

int layouts::number_of(const clang::ASTContext &context, clang::QualType type,
                       const std::string &name)
{
    /* Names of types in other sources are the same if the types are; unnamed ones have a place. */
    const std::string key = key_of(type);
    const auto [known, is_new] = numbers_.try_emplace(key, static_cast<int>(all_.size()));
    const int number = known->second;
    if (!is_new) {
        if (const auto found = refused_.find(number); found != refused_.end())
            refuse(found->second);
        return number;
    }
    all_.emplace_back();
    layout made;
    made.name = key;
    if (!type->isIncompleteType())
        made.size = context.getTypeSizeInChars(type).getQuantity();
    const std::string before = std::exchange(why_, {});
    add(context, type, 0, 1, name, made);
    if (reused_.count(name_of(type.getCanonicalType().getUnqualifiedType())) ||
        ends_with_array(context, type))
        fill_gaps(made);
    if (!why_.empty())
        refused_[number] = why_;
    if (!before.empty())
        why_ = before;
    all_[number] = std::move(made);
    return number;
}

/* What lies between the fields is saved as bytes. */
void layouts::fill_gaps(layout &made)
{
    std::vector<field> all;
    std::uint64_t end = 0;
    const auto fill_to = [&](std::uint64_t begin) {
        if (begin > end)
            all.push_back({end, begin - end, field::kind::basic, -1, "BYTE", 1});
    };
    for (auto &one : made.fields) {
        fill_to(one.offset);
        end = std::max(end, one.offset + one.count * one.size);
        all.push_back(std::move(one));
    }
    fill_to(made.size);
    made.fields = std::move(all);
}

std::set<std::string> reused_structs(const program &all)
{
    std::set<std::string> found;
    for_each_statement(all, [&](const function *in, const clang::Stmt *each) {
        const auto *cast = llvm::dyn_cast_or_null<clang::CastExpr>(each);
        if (!cast || cast->getCastKind() != clang::CK_BitCast ||
            !cast->getType()->isPointerType() || !cast->getSubExpr()->getType()->isPointerType())
            return;
        const auto from = cast->getSubExpr()->getType()->getPointeeType(),
                   to = cast->getType()->getPointeeType();
        if (in->context().hasSameUnqualifiedType(from, to))
            return;
        /* What is allocated is void at first, and what compares elements is given const void *. */
        if (from->isVoidType() &&
            (from.isConstQualified() ||
             llvm::isa<clang::CallExpr>(cast->getSubExpr()->IgnoreParenCasts())))
            return;
        if (to->isVoidType() && is_for_library(all, *in, cast))
            return;
        add_structs(struct_of(from), found);
        add_structs(struct_of(to), found);
    });
    return found;
}

layouts::outcome layouts::of(const clang::ASTContext &context, clang::QualType type,
                             const std::string &name)
{
    why_.clear();
    const int number = number_of(context, element_of(context, type), name);
    return {number, why_};
}

bool layouts::has_pointers(int number) const
{
    for (const auto &one : all_[number].fields)
        if (one.what == field::kind::pointer ||
            (one.what == field::kind::record && has_pointers(one.of)))
            return true;
    return false;
}

bool layouts::is_saved(int number) const
{
    for (const auto &one : all_[number].fields)
        if (one.what == field::kind::basic || one.what == field::kind::pointer ||
            (one.what == field::kind::record && is_saved(one.of)))
            return true;
    return false;
}

} // namespace zc::instrument
