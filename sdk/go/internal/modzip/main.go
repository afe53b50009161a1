// Modzip packs the module as module proxies serve it: every file below MODULE@VERSION/, nested modules excluded. The same
// files give the same bytes.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: modzip MODULE-FOLDER VERSION OUTPUT")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "modzip:", err)
		os.Exit(1)
	}
}

func pack(folder, version, output string) error {
	definition, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(definition), "\n")
	module, ok := strings.CutPrefix(first, "module ")
	if !ok {
		return fmt.Errorf("%s/go.mod does not start with the module's path", folder)
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	add := func(name, path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// Without a time the bytes depend on the content only.
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: strings.TrimSpace(module) + "@" + version + "/" + name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		_, err = entry.Write(data)
		return err
	}
	// WalkDir visits files in the order of their names.
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if nested == nil || strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "snippet-") {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		return add(filepath.ToSlash(name), path)
	})
	if err != nil {
		return err
	}
	// A module in a folder of a repository is distributed with the repository's licence.
	if err := add("LICENSE", filepath.Join(folder, "..", "..", "LICENSE")); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile(output, packed.Bytes(), 0o644)
}
