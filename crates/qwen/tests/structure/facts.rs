//! What the other modules check about the source, collected in one pass over the syntax trees.

use std::fs;
use std::sync::LazyLock;

use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Fields, ImplItemFn, Item, ItemFn, Lit, Meta, Signature, Type, Visibility};

use crate::{root, sources};

/// A function or method with a body.
pub struct Function {
    /// `path::name`, with the type for methods.
    pub place: String,
    pub name: String,
    /// From the signature to the closing brace.
    pub lines: usize,
    pub is_test: bool,
}

/// A struct, or a variant of an enum, with named fields.
pub struct Struct {
    pub place: String,
    pub name: String,
    /// The names of its fields.
    pub fields: Vec<String>,
}

/// The doc comment of a public item, field or variant.
pub struct Doc {
    pub place: String,
    pub text: String,
}

/// An `impl Deref`.
pub struct Dereference {
    pub place: String,
    pub from: String,
    pub to: String,
}

#[derive(Default)]
pub struct Facts {
    pub functions: Vec<Function>,
    pub structs: Vec<Struct>,
    pub docs: Vec<Doc>,
    pub dereferences: Vec<Dereference>,
}

/// The facts about all sources of the crates.
pub static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let mut facts = Facts::default();
    for path in sources() {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let path = path.display().to_string();
        let mut collector = Collector { facts: &mut facts, path, owner: Vec::new(), in_tests: false };
        collector.visit_file(&file);
    }
    facts
});

struct Collector<'a> {
    facts: &'a mut Facts,
    path: String,
    /// The types and modules around the current item.
    owner: Vec<String>,
    in_tests: bool,
}

impl Collector<'_> {
    fn place(&self, name: &str) -> String {
        let mut place = self.path.clone();
        for owner in &self.owner {
            place.push_str("::");
            place.push_str(owner);
        }
        format!("{place}::{name}")
    }

    fn add_function(&mut self, signature: &Signature, block: &Block) {
        let name = signature.ident.to_string();
        let lines = block.brace_token.span.close().end().line - signature.fn_token.span.start().line + 1;
        let place = self.place(&name);
        self.facts.functions.push(Function { place, name, lines, is_test: self.in_tests });
    }

    fn add_fields(&mut self, name: &str, fields: &Fields) {
        if let Fields::Named(named) = fields {
            let (place, name) = (self.place(name), name.to_owned());
            let fields = named.named.iter().flat_map(|field| &field.ident).map(ToString::to_string).collect();
            self.facts.structs.push(Struct { place, name, fields });
        }
    }

    fn add_doc(&mut self, name: &str, attributes: &[Attribute], is_public: bool) {
        let text = doc(attributes);
        if is_public && !self.in_tests && !text.is_empty() {
            self.facts.docs.push(Doc { place: self.place(name), text });
        }
    }

    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        self.owner.push(owner);
        visit(self);
        self.owner.pop();
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let outside = self.in_tests;
        self.in_tests |= is_for_tests(attributes(item));
        visit::visit_item(self, item);
        self.in_tests = outside;
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.within(item.ident.to_string(), |inner| visit::visit_item_mod(inner, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let owner = type_name(&item.self_ty);
        let is_deref = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if is_deref.is_some_and(|segment| segment.ident == "Deref") {
            for member in &item.items {
                if let syn::ImplItem::Type(target) = member {
                    let (place, to) = (self.path.clone(), type_name(&target.ty));
                    self.facts.dereferences.push(Dereference { place, from: owner.clone(), to });
                }
            }
        }
        self.within(owner, |inner| visit::visit_item_impl(inner, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let is_public = is_public(&item.vis);
        self.add_doc(&item.ident.to_string(), &item.attrs, is_public);
        self.within(item.ident.to_string(), |inner| {
            for member in &item.items {
                if let syn::TraitItem::Fn(function) = member {
                    inner.add_doc(&function.sig.ident.to_string(), &function.attrs, is_public);
                    if let Some(block) = &function.default {
                        inner.add_function(&function.sig, block);
                    }
                }
            }
            visit::visit_item_trait(inner, item);
        });
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add_function(&item.sig, &item.block);
        self.add_doc(&item.sig.ident.to_string(), &item.attrs, is_public(&item.vis));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add_function(&item.sig, &item.block);
        self.add_doc(&item.sig.ident.to_string(), &item.attrs, is_public(&item.vis));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let name = item.ident.to_string();
        self.add_fields(&name, &item.fields);
        self.add_doc(&name, &item.attrs, is_public(&item.vis));
        let is_type_public = is_public(&item.vis);
        self.within(name, |inner| {
            for field in &item.fields {
                let Some(ident) = &field.ident else { continue };
                inner.add_doc(&ident.to_string(), &field.attrs, is_type_public && is_public(&field.vis));
            }
        });
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let name = item.ident.to_string();
        let is_public = is_public(&item.vis);
        self.add_doc(&name, &item.attrs, is_public);
        self.within(name, |inner| {
            for variant in &item.variants {
                let name = variant.ident.to_string();
                inner.add_fields(&name, &variant.fields);
                inner.add_doc(&name, &variant.attrs, is_public);
                inner.within(name, |inner| {
                    for field in &variant.fields {
                        let Some(ident) = &field.ident else { continue };
                        inner.add_doc(&ident.to_string(), &field.attrs, is_public);
                    }
                });
            }
        });
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add_doc(&item.ident.to_string(), &item.attrs, is_public(&item.vis));
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add_doc(&item.ident.to_string(), &item.attrs, is_public(&item.vis));
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => &[],
    }
}

/// True for items that exist in tests only.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.segments.last().is_some_and(|segment| segment.ident == "test"),
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::NameValue(_) => false,
    })
}

/// True for `pub`; what is visible in its crate only is not public.
fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The name of a type without its arguments.
fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => {
            path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
        }
        Type::Reference(reference) => type_name(&reference.elem),
        _ => String::new(),
    }
}

/// The text of a doc comment, its lines joined.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}
