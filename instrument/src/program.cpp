/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <algorithm>
#include <filesystem>

namespace zc::instrument {

namespace {

std::string file_of(const clang::ASTContext &context, clang::SourceLocation at)
{
    const auto &sources = context.getSourceManager();
    const auto place = sources.getPresumedLoc(sources.getExpansionLoc(at));
    if (place.isInvalid())
        return "?";
    return std::filesystem::path(place.getFilename()).filename().string();
}

unsigned line_of(const clang::ASTContext &context, clang::SourceLocation at)
{
    const auto &sources = context.getSourceManager();
    const auto place = sources.getPresumedLoc(sources.getExpansionLoc(at));
    return place.isValid() ? place.getLine() : 0;
}

/* Of one without a name, that of its type. */
std::string tag_of(const clang::RecordDecl *record)
{
    if (!record->getNameAsString().empty())
        return record->getNameAsString();
    const auto *named = record->getTypedefNameForAnonDecl();
    return named ? "typedef " + named->getNameAsString() : "";
}

bool is_same(const clang::RecordDecl *one, const clang::RecordDecl *other);

bool is_same(clang::QualType one, clang::QualType other)
{
    one = one.getCanonicalType();
    other = other.getCanonicalType();
    if (one->isArrayType() && other->isArrayType())
        return is_same(one->getAsArrayTypeUnsafe()->getElementType(),
                       other->getAsArrayTypeUnsafe()->getElementType());
    if (one->isPointerType() && other->isPointerType()) {
        const auto *left = one->getPointeeType()->getAsRecordDecl(),
                   *right = other->getPointeeType()->getAsRecordDecl();
        return left && right ? tag_of(left) == tag_of(right)
                             : is_same(one->getPointeeType(), other->getPointeeType());
    }
    const auto *left = one->getAsRecordDecl(), *right = other->getAsRecordDecl();
    if (left && right)
        return is_same(left, right);
    return one.getAsString() == other.getAsString();
}

/* Fields of the same names, types and places. */
bool is_same(const clang::RecordDecl *one, const clang::RecordDecl *other)
{
    one = one->getDefinition();
    other = other->getDefinition();
    if (one == other || !one || !other)
        return one == other;
    const auto &first = one->getASTContext(), &second = other->getASTContext();
    const auto size = [](const clang::RecordDecl *of) {
        return of->getASTContext().getTypeSize(of->getASTContext().getRecordType(of));
    };
    if (tag_of(one) != tag_of(other) || one->isUnion() != other->isUnion() ||
        size(one) != size(other))
        return false;
    auto left = one->field_begin(), right = other->field_begin();
    for (; left != one->field_end() && right != other->field_end(); ++left, ++right)
        if (left->getName() != right->getName() ||
            first.getFieldOffset(*left) != second.getFieldOffset(*right) ||
            left->isBitField() != right->isBitField() ||
            first.getTypeSize(left->getType()) != second.getTypeSize(right->getType()) ||
            !is_same(left->getType(), right->getType()))
            return false;
    return left == one->field_end() && right == other->field_end();
}

std::string name_of_file(const std::string &path)
{
    return std::filesystem::path(path).filename().string();
}

/* Of the source or header that @one stands in. */
std::string path_of(const clang::Decl *one)
{
    const auto &sources = one->getASTContext().getSourceManager();
    const auto place = sources.getPresumedLoc(sources.getExpansionLoc(one->getLocation()));
    return place.isValid() ? std::filesystem::path(place.getFilename()).lexically_normal().string()
                           : "";
}

bool is_const(const clang::VarDecl *variable)
{
    auto type = variable->getType();
    while (const auto *array = type->getAsArrayTypeUnsafe())
        type = array->getElementType();
    return type.isConstQualified();
}

/* Has @one static variables? */
bool keeps_variables(const clang::FunctionDecl *one)
{
    bool found = false;
    for_each_statement(one->getBody(), [&found](const clang::Stmt *each) {
        const auto *reference = llvm::dyn_cast_or_null<clang::DeclRefExpr>(each);
        const auto *variable =
            reference ? llvm::dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
        found |= variable && variable->isStaticLocal() && !is_const(variable);
    });
    return found;
}

} // namespace

std::string place_of(const clang::ASTContext &context, clang::SourceLocation at)
{
    return file_of(context, at) + ":" + std::to_string(line_of(context, at));
}

const clang::FunctionDecl *callee_of(const clang::CallExpr *call)
{
    return call->getDirectCallee();
}

/* Keys are asked for again and again; a declaration lives as long as its program. */
static std::unordered_map<const clang::Decl *, std::string> &known_keys()
{
    static std::unordered_map<const clang::Decl *, std::string> known;
    return known;
}

template <typename Decl, typename Make>
static const std::string &known_key(const Decl *decl, Make make)
{
    const auto found = known_keys().find(decl);
    return found != known_keys().end() ? found->second
                                       : known_keys().emplace(decl, make(decl)).first->second;
}

static std::string make_key(const clang::FunctionDecl *decl)
{
    const std::string name = decl->getNameAsString();
    if (decl->isExternallyVisible())
        return name;
    return file_of(decl->getASTContext(), decl->getCanonicalDecl()->getLocation()) + ":" + name;
}

static std::string make_key(const clang::VarDecl *variable)
{
    const std::string name = variable->getNameAsString();
    const auto &context = variable->getASTContext();
    if (const auto *owner =
            llvm::dyn_cast_or_null<clang::FunctionDecl>(variable->getParentFunctionOrMethod())) {
        if (!variable->hasExternalStorage())
            return program::key(owner) + ":" + name + "@" +
                   std::to_string(line_of(context, variable->getLocation())) + "." +
                   std::to_string(context.getSourceManager().getExpansionColumnNumber(
                       variable->getLocation()));
    }
    if (variable->isExternallyVisible())
        return name;
    return file_of(context, variable->getCanonicalDecl()->getLocation()) + ":" + name;
}

static std::string make_key(const clang::FieldDecl *field)
{
    const auto *record = field->getParent();
    std::string name = record->getNameAsString();
    if (name.empty())
        if (const auto *named = record->getTypedefNameForAnonDecl())
            name = named->getNameAsString();
    if (name.empty())
        name = place_of(field->getASTContext(), record->getLocation());
    return name + "." + field->getNameAsString();
}

const std::string &program::key(const clang::FunctionDecl *decl)
{
    return known_key(decl, [](const clang::FunctionDecl *one) { return make_key(one); });
}

const std::string &program::key(const clang::VarDecl *variable)
{
    return known_key(variable, [](const clang::VarDecl *one) { return make_key(one); });
}

const std::string &program::key(const clang::FieldDecl *field)
{
    return known_key(field, [](const clang::FieldDecl *one) { return make_key(one); });
}

std::string key_of_object(const clang::Expr *object)
{
    for (;;) {
        object = object->IgnoreParenImpCasts();
        if (const auto *subscript = llvm::dyn_cast<clang::ArraySubscriptExpr>(object)) {
            object = subscript->getBase()->IgnoreParenImpCasts();
            if (!object->getType()->isArrayType())
                return {};
            continue;
        }
        const auto *member = llvm::dyn_cast<clang::MemberExpr>(object);
        if (const auto *field =
                member ? llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl()) : nullptr)
            return program::key(field);
        const auto *reference = llvm::dyn_cast<clang::DeclRefExpr>(object);
        const auto *variable =
            reference ? llvm::dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
        return variable ? program::key(variable) : "";
    }
}

void add_fields(const clang::RecordDecl *record, std::set<std::string> &to)
{
    record = record ? record->getDefinition() : nullptr;
    if (!record)
        return;
    for (const auto *member : record->fields()) {
        to.insert(program::key(member));
        auto type = member->getType();
        while (const auto *array = type->getAsArrayTypeUnsafe())
            type = array->getElementType();
        if (!type->isPointerType())
            add_fields(type->getAsRecordDecl(), to);
    }
}

void program::find_clashes(clang::ASTUnit &unit)
{
    const auto &context = unit.getASTContext();
    const auto refuse = [this, &context](const clang::Decl *one, const std::string &why) {
        clashes_.push_back({place_of(context, one->getLocation()), why});
    };
    for (const auto &other : units_)
        if (other.get() != &unit && name_of_file(other->getMainFileName().str()) ==
                                        name_of_file(unit.getMainFileName().str()))
            clashes_.push_back({name_of_file(unit.getMainFileName().str()),
                                "is the name of two sources, which cannot be told apart"});
    for (auto it = unit.top_level_begin(); it != unit.top_level_end(); ++it) {
        if (context.getSourceManager().isInSystemHeader((*it)->getLocation()))
            continue;
        if (const auto *variable = llvm::dyn_cast<clang::VarDecl>(*it)) {
            const auto found = globals_.find(key(variable));
            if (found != globals_.end() && &found->second->getASTContext() != &context &&
                !variable->isExternallyVisible() && variable->isReferenced() && !is_const(variable))
                refuse(variable, "'" + variable->getNameAsString() +
                                     "' is static and stands in a header: each source has its own");
            continue;
        }
        const auto *decl = llvm::dyn_cast<clang::FunctionDecl>(*it);
        const auto *other = decl && decl->doesThisDeclarationHaveABody() ? find(decl) : nullptr;
        if (!other || &other->context() == &context)
            continue;
        if (path_of(decl) != path_of(other->decl))
            refuse(decl, decl->getNameAsString() + "() is another function in " +
                             path_of(other->decl) + ", and cannot be told from it");
        else if (keeps_variables(decl))
            refuse(decl, decl->getNameAsString() + "() stands in a header and has static "
                                                   "variables: each source has its own");
    }
}

program::program(std::vector<std::unique_ptr<clang::ASTUnit>> units) : units_(std::move(units))
{
    for (const auto &unit : units_) {
        for (const auto *each : unit->getASTContext().getTranslationUnitDecl()->decls())
            if (const auto *record = llvm::dyn_cast<clang::RecordDecl>(each);
                record && record->isThisDeclarationADefinition() && !tag_of(record).empty())
                definitions_[tag_of(record)].push_back(record);
        for (auto it = unit->top_level_begin(); it != unit->top_level_end(); ++it) {
            if (const auto *variable = llvm::dyn_cast<clang::VarDecl>(*it)) {
                if (variable->isThisDeclarationADefinition() != clang::VarDecl::DeclarationOnly)
                    globals_.try_emplace(key(variable), variable);
                continue;
            }
            const auto *decl = llvm::dyn_cast<clang::FunctionDecl>(*it);
            if (!decl || !decl->doesThisDeclarationHaveABody())
                continue;
            function one;
            one.name = key(decl);
            one.decl = decl;
            one.parents = std::make_unique<clang::ParentMap>(decl->getBody());
            clang::CFG::BuildOptions options;
            options.setAllAlwaysAdd();
            one.cfg = clang::CFG::buildCFG(decl, decl->getBody(), &decl->getASTContext(), options);
            if (!one.cfg)
                continue;
            functions_.try_emplace(one.name, std::move(one));
        }
        find_clashes(*unit);
        found_.clear(); /* there are more functions with the next one */
    }
}

program::~program()
{
    known_keys().clear();
}

const clang::RecordDecl *program::definition_of(const clang::RecordDecl *decl) const
{
    if (!decl || decl->getDefinition())
        return decl ? decl->getDefinition() : nullptr;
    const auto found = definitions_.find(tag_of(decl));
    return found == definitions_.end() || has_other_definitions(decl) ? nullptr
                                                                      : found->second.front();
}

bool program::has_other_definitions(const clang::RecordDecl *decl) const
{
    const auto found = definitions_.find(tag_of(decl));
    if (found == definitions_.end())
        return false;
    const auto [known, is_new] = differing_.try_emplace(found->first, false);
    if (is_new)
        known->second = std::any_of(
            found->second.begin(), found->second.end(),
            [&](const clang::RecordDecl *other) { return !is_same(found->second.front(), other); });
    return known->second;
}

const function *program::find(const std::string &name) const
{
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : &found->second;
}

const function *program::find(const clang::FunctionDecl *decl) const
{
    if (!decl)
        return nullptr;
    const auto [known, is_new] = found_.try_emplace(decl, nullptr);
    if (is_new)
        known->second = find(key(decl));
    return known->second;
}

} // namespace zc::instrument
