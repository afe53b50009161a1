package qwen

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

var embedded struct {
	sync.Mutex
	compressed []byte
}

// RegisterBinary makes a gzip-compressed qwen program a part of this program. Packages that the command cmd/qwen-embed
// generates call it; they are compiled with the build tag qwen_embed.
func RegisterBinary(compressed []byte) {
	embedded.Lock()
	defer embedded.Unlock()
	embedded.compressed = compressed
}

// FindBinary returns the qwen program: the given path, QWEN_BIN, an embedded program, or qwen in PATH, in this order.
func FindBinary(path string) (string, error) {
	var searched []string
	for _, given := range []struct{ name, path string }{{"Options.Binary", path}, {"QWEN_BIN", os.Getenv("QWEN_BIN")}} {
		if given.path == "" {
			searched = append(searched, given.name+" (not set)")
			continue
		}
		found, err := exec.LookPath(given.path)
		if err != nil {
			// A path that was given is meant: another program would be a surprise.
			return "", &taggedError{ErrBinaryNotFound, fmt.Sprintf("%s is %q: %v; correct it or unset it", given.name, given.path, err), err}
		}
		return filepath.Abs(found)
	}
	found, err := extractBinary()
	if err != nil {
		return "", &taggedError{ErrBinaryNotFound, "the embedded program cannot be used: " + err.Error(), err}
	}
	if found != "" {
		return found, nil
	}
	found, err = exec.LookPath("qwen")
	if err == nil {
		return filepath.Abs(found)
	}
	searched = append(searched, "an embedded program (none)", "PATH ("+os.Getenv("PATH")+")")
	text := "searched " + strings.Join(searched, ", ") + "; install qwen, put it on PATH, or name it with QWEN_BIN or Options.Binary"
	return "", &taggedError{ErrBinaryNotFound, text, err}
}

// extractBinary writes the embedded program to the user's cache, once for each version; empty if there is none.
func extractBinary() (string, error) {
	embedded.Lock()
	defer embedded.Unlock()
	if embedded.compressed == nil {
		return "", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(embedded.compressed)
	folder := filepath.Join(cache, "qwen-sdk-go", hex.EncodeToString(sum[:16]))
	path := filepath.Join(folder, "qwen")
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0 {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	reader, err := gzip.NewReader(bytes.NewReader(embedded.compressed))
	if err != nil {
		return "", err
	}
	// Other processes may extract at the same moment: each writes its own file, and the rename is atomic.
	file, err := os.CreateTemp(folder, "qwen-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	_, err = io.Copy(file, reader)
	err = errors.Join(err, file.Chmod(0o700), file.Close())
	if err != nil {
		return "", err
	}
	return path, os.Rename(file.Name(), path)
}
