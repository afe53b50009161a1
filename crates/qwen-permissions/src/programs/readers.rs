//! Programs that only read, each with its complete option grammar. A program without one asks.

use super::grammar::{Grammar, Style};
use super::table::Operands;
use super::{Arguments, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::is_listed;

/// A program that only reads if none of its harmful options is given.
pub(super) struct Reader {
    pub(super) names: &'static str,
    pub(super) grammar: Grammar,
    operands: Operands,
}

pub(super) fn reader(name: &str) -> Option<&'static Reader> {
    READERS.iter().find(|reader| is_listed(reader.names, name))
}

impl Reader {
    pub(super) fn examine(&self, arguments: Arguments<'_>) -> Result<Use, Refusal> {
        let read = self.grammar.read(&arguments, 1)?;
        let name = arguments.name();
        let mut operands = self.operands.paths(&arguments, &read)?;
        if read.follows_links && operands.is_empty() {
            operands.push(Word::Literal(".".to_owned()));
        }
        let lists = |word: &Word| word.known_prefix().starts_with('@') || word.known_prefix().is_empty();
        if name == "strings" && arguments.words_at(&read.operands).iter().any(lists) {
            return Err("strings may take its arguments from a file".to_owned());
        }
        Ok(Use {
            only_reads: true,
            // `diff` compares two directories file by file even without a recursive option.
            follows_links: name == "diff" || read.follows_links,
            paths: operands,
            git: None,
        })
    }
}

const fn getopt(names: &'static str, options: &'static str, operands: Operands) -> Reader {
    Reader { names, grammar: Grammar { style: Style::Getopt, options }, operands }
}

const fn styled(style: Style, names: &'static str, options: &'static str, operands: Operands) -> Reader {
    Reader { names, grammar: Grammar { style, options }, operands }
}

#[rustfmt::skip]
pub(super) static READERS: &[Reader] = &[
    getopt("true false : break continue exit return shift", "", Operands::Text),
    getopt("pwd", "L,logical P,physical", Operands::None),
    getopt("read", "r d=", Operands::Text),
    getopt("whoami arch logname", "", Operands::None),
    getopt("tty", "s,silent,quiet", Operands::None),
    getopt("hostname", "a,alias A,all-fqdns* b,boot! d,domain* f,fqdn,long* F,file=! i,ip-address* I,all-ip-addresses s,short y,yp,nis h V", Operands::None),
    getopt("nproc", "all ignore=", Operands::None),
    getopt("id", "a Z,context g,group G,groups n,name r,real u,user z,zero", Operands::Text),
    getopt("groups", "", Operands::Text),
    getopt(
        "uname",
        "a,all s,kernel-name,sysname n,nodename r,kernel-release,release v,kernel-version m,machine p,processor \
         i,hardware-platform o,operating-system",
        Operands::None,
    ),
    getopt("which", "a,all s i,read-alias* skip-alias read-functions* skip-functions skip-dot skip-tilde show-dot show-tilde tty-only v V", Operands::Text),
    getopt("type", "a f p t P", Operands::Text),
    getopt("command", "v V", Operands::Text),
    getopt("sleep", "", Operands::Text),
    getopt("seq", "f,format= s,separator= w,equal-width # .", Operands::Text),
    getopt("expr", "", Operands::Text),
    getopt("basename", "a,multiple s,suffix= z,zero", Operands::Text),
    getopt("dirname", "z,zero", Operands::Text),
    getopt("cat", "A,show-all b,number-nonblank e E,show-ends n,number s,squeeze-blank t T,show-tabs u v,show-nonprinting", Operands::Paths),
    getopt("tac", "b,before r,regex s,separator=", Operands::Paths),
    getopt("rev", "0,zero h V", Operands::Paths),
    getopt(
        "nl",
        "b,body-numbering= d,section-delimiter= f,footer-numbering= h,header-numbering= i,line-increment= \
         l,join-blank-lines= n,number-format= p,no-renumber s,number-separator= v,starting-line-number= w,number-width=",
        Operands::Paths,
    ),
    getopt("head", "c,bytes= n,lines= q,quiet,silent v,verbose z,zero-terminated #", Operands::Paths),
    getopt(
        "tail",
        "c,bytes= f* follow?* F* n,lines= max-unchanged-stats=* pid=* q,quiet,silent retry* s,sleep-interval=* v,verbose \
         z,zero-terminated debug #",
        Operands::Paths,
    ),
    getopt("wc", "c,bytes m,chars l,lines files0-from=* L,max-line-length w,words total= debug", Operands::Paths),
    getopt("cut", "b,bytes= c,characters= d,delimiter= f,fields= n complement s,only-delimited output-delimiter= z,zero-terminated", Operands::Paths),
    getopt("tr", "c,C,complement d,delete s,squeeze-repeats t,truncate-set1", Operands::Text),
    getopt("fold", "b,bytes c,characters s,spaces w,width= #", Operands::Paths),
    getopt("expand", "i,initial t,tabs= #", Operands::Paths),
    getopt("unexpand", "a,all first-only t,tabs= #", Operands::Paths),
    getopt("paste", "d,delimiters= s,serial z,zero-terminated", Operands::Paths),
    getopt("comm", "1 2 3 check-order nocheck-order output-delimiter= total z,zero-terminated", Operands::Paths),
    getopt("cmp", "b,print-bytes i,ignore-initial= l,verbose n,bytes= s,quiet,silent v", Operands::Paths),
    getopt("join", "a= e= i,ignore-case j= o= t= v= 1= 2= check-order nocheck-order header z,zero-terminated", Operands::Paths),
    getopt(
        "column",
        "t,table n,table-name= O,table-order= N,table-columns= C,table-column= l,table-columns-limit= E,table-noextreme= \
         d,table-noheadings m,table-maxout e,table-header-repeat H,table-hide= R,table-right= T,table-truncate= W,table-wrap= \
         L,keep-empty-lines,table-empty-lines J,json r,tree= i,tree-id= p,tree-parent= c,output-width,columns= \
         o,output-separator= s,separator= x,fillrows S,use-spaces= h V",
        Operands::Paths,
    ),
    getopt("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum", "b,binary c,check* tag t,text z,zero ignore-missing quiet status strict w,warn", Operands::Paths),
    getopt("b2sum", "b,binary c,check* l,length= tag t,text z,zero ignore-missing quiet status strict w,warn", Operands::Paths),
    getopt("cksum", "a,algorithm= b,binary base64 c,check* debug ignore-missing l,length= quiet raw status strict t,text tag untagged \
         w,warn z,zero", Operands::Paths),
    getopt("sum", "r s,sysv", Operands::Paths),
    getopt(
        "od",
        "A,address-radix= endian= j,skip-bytes= N,read-bytes= S= strings? t,format= v,output-duplicates w,width? traditional \
         a b c d e f h i l o s x B D F H I L O X",
        Operands::Paths,
    ),
    getopt(
        "hexdump",
        "b,one-byte-octal c,one-byte-char C,canonical d,two-bytes-decimal e,format= f,format-file=* L,color? n,length= \
         o,two-bytes-octal s,skip= v,no-squeezing x,two-bytes-hex X,one-byte-hex h V",
        Operands::Paths,
    ),
    getopt(
        "strings",
        "a,all d,data e,encoding= f,print-file-name n,bytes= o s,output-separator= t,radix= T,target= U,unicode= \
         w,include-all-whitespace h H v V #",
        Operands::Paths,
    ),
    getopt(
        "ls dir vdir",
        "a,all A,almost-all author b,escape block-size= B,ignore-backups c C color? d,directory D,dired f F classify? \
         file-type format= full-time g group-directories-first G,no-group h,human-readable si H,dereference-command-line* \
         dereference-command-line-symlink-to-dir* hide= hyperlink? indicator-style= i,inode I,ignore= k,kibibytes l \
         L,dereference* m n,numeric-uid-gid N,literal o p q,hide-control-chars show-control-chars Q,quote-name quoting-style= \
         r,reverse R,recursive s,size S sort= time= time-style= t T,tabsize= u U v w,width= x X Z,context zero 1",
        Operands::Paths,
    ),
    getopt("stat", "L,dereference f,file-system cached= c,format= printf= t,terse", Operands::Paths),
    getopt(
        "du",
        "0,null a,all A,apparent-size B,block-size= b,bytes c,total D,dereference-args* d,max-depth= exclude= files0-from=* H* \
         h,human-readable inodes k L,dereference* l,count-links m P,no-dereference S,separate-dirs si s,summarize t,threshold= \
         time? time-style= x,one-file-system X,exclude-from=*",
        Operands::Paths,
    ),
    getopt(
        "df",
        "a,all B,block-size= exclude-type= h,human-readable H,si i,inodes k l,local no-sync output? P,portability sync* total \
         t,type= T,print-type v x=",
        Operands::Paths,
    ),
    getopt(
        "realpath",
        "E,canonicalize e,canonicalize-existing m,canonicalize-missing L,logical P,physical q,quiet relative-to= \
         relative-base= s,strip,no-symlinks z,zero",
        Operands::Paths,
    ),
    getopt("readlink", "f,canonicalize e,canonicalize-existing m,canonicalize-missing n,no-newline q,quiet s,silent v,verbose z,zero", Operands::Paths),
    getopt(
        "grep egrep fgrep",
        "A,after-context= a,text B,before-context= b,byte-offset binary-files= C,context= c,count color? colour? D,devices= \
         d,directories= E,extended-regexp e,regexp= exclude= exclude-dir= exclude-from=* F,fixed-strings f,file=* \
         G,basic-regexp group-separator= H,with-filename h,no-filename I i,ignore-case include= L,files-without-match label= \
         l,files-with-matches line-buffered m,max-count= n,line-number no-group-separator no-ignore-case o,only-matching \
         P,perl-regexp q,quiet,silent R,dereference-recursive@ r,recursive s,no-messages T,initial-tab U,binary \
         u,unix-byte-offsets V v,invert-match w,word-regexp x,line-regexp y Z,null z,null-data #",
        Operands::Pattern { given_by: &["-e", "--regexp"] },
    ),
    getopt(
        "sort",
        "b,ignore-leading-blanks batch-size= c check? C compress-program=! d,dictionary-order debug f,ignore-case files0-from=! \
         g,general-numeric-sort h,human-numeric-sort i,ignore-nonprinting k,key= M,month-sort m,merge n,numeric-sort \
         o,output=! parallel= R,random-sort random-source=* r,reverse S,buffer-size= s,stable sort= T,temporary-directory=! \
         t,field-separator= u,unique V,version-sort y=* z,zero-terminated",
        Operands::Paths,
    ),
    getopt(
        "uniq",
        "all-repeated? c,count D d,repeated f,skip-fields= group? i,ignore-case s,skip-chars= u,unique w,check-chars= \
         z,zero-terminated #",
        Operands::OnePath,
    ),
    getopt(
        "diff",
        "a,text B,ignore-blank-lines b,ignore-space-change binary C= c changed-group-format= color? context? D,ifdef= d,minimal \
         E,ignore-tab-expansion e,ed F,show-function-line= from-file=* H h horizon-lines= I,ignore-matching-lines= i,ignore-case \
         ignore-file-name-case inhibit-hunk-merge L,label= l,paginate! left-column line-format= N,new-file n,rcs \
         new-group-format= new-line-format= no-dereference no-ignore-file-name-case normal old-group-format= old-line-format= \
         P,unidirectional-new-file p,show-c-function palette= presume-output-tty q,brief r,recursive S,starting-file= \
         s,report-identical-files sdiff-merge-assist speed-large-files strip-trailing-cr suppress-blank-empty \
         suppress-common-lines T,initial-tab t,expand-tabs tabsize= to-file=* U= u unchanged-group-format= \
         unchanged-line-format= unified? v W,width= w,ignore-all-space X,exclude-from=* x,exclude= y,side-by-side \
         Z,ignore-trailing-space #",
        Operands::Paths,
    ),
    getopt("date", "d,date= debug f,file=* I,iso-8601? R,rfc-email,rfc-822,rfc-2822 r,reference=* resolution rfc-3339= s,set=! \
         u,utc,universal,uct", Operands::Format),
    getopt(
        "file",
        "apple b,brief C,compile! c,checking-printout d,debug e,exclude= exclude-quiet= extension F,separator= f,files-from=* \
         h,no-dereference i,mime k,keep-going L,dereference l,list m,magic-file=* mime-encoding mime-type N,no-pad n,no-buffer \
         P,parameter= p,preserve-date! r,raw S,no-sandbox* s,special-files* v Z,uncompress-noreport! z,uncompress! 0,print0",
        Operands::Paths,
    ),
    getopt("base64 base32", "d,decode i,ignore-garbage w,wrap=", Operands::OnePath),
    styled(
        Style::ValuesApart,
        "tree",
        "A C D F H= I= J L= N P= Q R! S T= U X a acl authority= c charset= compress= d device dirsfirst du f filelimit= \
         filesfirst fromfile* fromtabfile* g gitfile=* gitignore h hintro=* houtro=* hyperlink i ignore-case info infofile=* \
         inodes l* matchdirs metafirst n nolinks noreport o=! opt-toggle p prune q r s scheme= selinux si sort? t timefmt= u v x",
        Operands::Paths,
    ),
    styled(
        Style::WholeNames,
        "rg",
        "A,after-context= B,before-context= C,context= E,encoding= F,fixed-strings H,with-filename I,no-filename L,follow@ \
         M,max-columns= N,no-line-number P,pcre2 S,smart-case T,type-not= U,multiline V a,text auto-hybrid-regex b,byte-offset \
         binary block-buffered c,count color= colors= column context-separator= count-matches crlf d,max-depth,maxdepth= debug \
         dfa-size-limit= e,regexp= engine= f,file=* field-context-separator= field-match-separator= files g,glob= \
         generate= glob-case-insensitive h heading hidden hostname-bin=! hyperlink-format= i,ignore-case iglob= ignore-file=* \
         ignore-file-case-insensitive include-zero j,threads= json l,files-with-matches files-without-match line-buffered \
         m,max-count= max-columns-preview max-filesize= mmap multiline-dotall n,line-number no-auto-hybrid-regex no-binary \
         no-block-buffered no-byte-offset no-column no-config no-context-separator no-crlf no-encoding no-fixed-strings \
         no-follow no-glob-case-insensitive no-heading no-hidden no-ignore no-ignore-dot no-ignore-exclude no-ignore-files \
         no-ignore-file-case-insensitive no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-include-zero \
         no-invert-match no-json no-line-buffered no-max-columns-preview no-messages no-mmap no-multiline no-multiline-dotall \
         no-one-file-system no-pcre2 no-pcre2-unicode no-pre no-require-git no-search-zip no-sort-files no-stats no-text no-trim \
         no-unicode null null-data o,only-matching one-file-system p,pretty passthru passthrough path-separator= pcre2-version \
         pre=! pre-glob= q,quiet r,replace= regex-size-limit= require-git s,case-sensitive sort= sort-files sortr= stats \
         stop-on-nonmatch t,type= trace trim type-add= type-clear= type-list u,unrestricted unicode v,invert-match vimgrep \
         w,word-regexp x,line-regexp z,search-zip! 0 .",
        Operands::Pattern { given_by: &["-e", "--regexp", "--files", "--type-list"] },
    ),
    styled(Style::FirstLetter, "xxd", "a b C c= d E e g= h i l= n= o= p R= r s= t u v", Operands::OnePath),
];

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::grammar::Arity;
    use super::super::scripts::{JQ, SED};
    use super::READERS;

    /// The options in a program's own description: each with what follows it.
    fn described(help: &str) -> Vec<(String, Arity)> {
        let mut options = Vec::new();
        for line in help.lines().filter(|line| line.starts_with(' ') && line.trim_start().starts_with('-')) {
            // The description stands behind two blanks.
            let line = line.trim_start();
            let head = line.split("  ").next().unwrap_or(line).split('\t').next().unwrap_or(line);
            for part in head.split([',', ' ']).filter(|part| part.starts_with('-') && part.len() > 1) {
                let (name, arity) = match part.find(['[', '=', '<', '{']) {
                    Some(at) if part[at..].starts_with("[=") => (&part[..at], Arity::Optional),
                    Some(at) if part[at..].starts_with('[') => (&part[..at], Arity::Optional),
                    Some(at) => (&part[..at], Arity::Required),
                    None => (part, Arity::None),
                };
                let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
                let is_option =
                    name.chars().all(plain) && !name[2.min(name.len())..].contains(char::is_uppercase);
                if is_option
                    && name.trim_start_matches('-').len() + 1 < name.len() + usize::from(name.len() == 2)
                {
                    options.push((name.to_owned(), arity));
                }
            }
        }
        options
    }

    /// Text that looks like an option, and options that are described once for each kind of value.
    const MISLEADING: [&str; 4] = ["jq --", "cut -M", "du --time", "sort --check"];

    #[test]
    fn every_option_that_a_program_describes_is_in_its_grammar_with_its_arity() {
        let mut wrong = Vec::new();
        let mut checked = 0;
        let readers = READERS.iter().map(|reader| (reader.names, reader.grammar));
        for (names, grammar) in readers.chain([("sed", SED), ("jq", JQ)]) {
            for program in names.split(' ').filter(|name| !matches!(*name, "xxd" | "expr" | "which")) {
                let asked = Command::new(program).arg("--help").env("LC_ALL", "C").output();
                let Ok(output) = asked else { continue };
                let help = String::from_utf8_lossy(&output.stdout).into_owned();
                for (option, arity) in described(&help) {
                    if MISLEADING.contains(&format!("{program} {option}").as_str()) {
                        continue;
                    }
                    checked += 1;
                    let known = match option.strip_prefix("--") {
                        Some(name) => {
                            grammar.name(name).filter(|(_, whole)| *whole == name).map(|(entry, _)| entry)
                        }
                        None => option.chars().nth(1).and_then(|letter| grammar.letter(letter)),
                    };
                    match known {
                        None => wrong.push(format!("{program} {option} is missing")),
                        Some(entry)
                            if option.starts_with("--") && arity != Arity::None && entry.arity != arity =>
                        {
                            wrong.push(format!(
                                "{program} {option}: {:?}, described as {arity:?}",
                                entry.arity
                            ));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(checked > 300, "only {checked} options were found");
    }

    #[test]
    fn no_spelling_stands_twice_in_a_grammar() {
        for reader in READERS {
            let mut spellings: Vec<&str> =
                reader.grammar.entries().flat_map(|entry| entry.spellings().collect::<Vec<_>>()).collect();
            let all = spellings.len();
            spellings.sort_unstable();
            spellings.dedup();
            assert_eq!(spellings.len(), all, "{}", reader.names);
        }
    }

    #[test]
    fn the_documentation_lists_the_programs_with_complete_grammars() {
        let own = "echo printf test [ [[ awk cd set find git sed jq";
        let mut names: Vec<&str> =
            READERS.iter().flat_map(|reader| reader.names.split(' ')).chain(own.split(' ')).collect();
        names.sort_unstable();
        let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/permissions.md");
        let page = std::fs::read_to_string(path).unwrap();
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&listed), "docs/permissions.md should list: {listed}");
    }
}
