package hub

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// drainTimeout bounds how long the pipes of a process that has ended are read: another process may hold them.
const drainTimeout = 2 * time.Second

// Exit describes how a process ended.
type Exit struct {
	// Code is the exit code; -1 if a signal ended the process.
	Code int
	// Signal is the signal that ended the process; 0 if it exited by itself.
	Signal int
	// Stderr is the end of what it wrote to standard error.
	Stderr string
}

// process is the hub's operating-system process and its pipes.
type process struct {
	cmd            *exec.Cmd
	stdin          *os.File
	stdout, stderr *os.File
	// ended is closed once the process is gone.
	ended chan struct{}
	exit  Exit
}

// startProcess starts the hub. The thread that starts it lives as long as the process: the kernel ends the hub when
// that thread ends, which is when this program ends, however that happens.
func startProcess(path string, args, env []string, dir string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = env, dir
	cmd.SysProcAttr = processAttributes()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	var childEnds []*os.File
	closeAll := func(files ...*os.File) {
		for _, file := range files {
			if file != nil {
				file.Close()
			}
		}
	}
	pipe := func() (*os.File, *os.File, error) {
		r, w, err := os.Pipe()
		return r, w, err
	}
	inR, inW, err := pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := pipe()
	if err != nil {
		closeAll(inR, inW)
		return nil, err
	}
	errR, errW, err := pipe()
	if err != nil {
		closeAll(inR, inW, outR, outW)
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	childEnds = []*os.File{inR, outW, errW}
	p.stdin, p.stdout, p.stderr = inW, outR, errR
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		closeAll(childEnds...)
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		p.exit = exitOf(err)
		deadline := time.Now().Add(drainTimeout)
		// A pipe that cannot have a deadline is read to its end.
		_ = p.stdout.SetReadDeadline(deadline)
		_ = p.stderr.SetReadDeadline(deadline)
		close(p.ended)
	}()
	if err := <-started; err != nil {
		closeAll(p.stdin, p.stdout, p.stderr)
		return nil, err
	}
	return p, nil
}

func exitOf(err error) Exit {
	var exited *exec.ExitError
	if !errors.As(err, &exited) {
		return Exit{}
	}
	if status, ok := exited.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Exit{Code: -1, Signal: int(status.Signal())}
	}
	return Exit{Code: exited.ExitCode()}
}

// kill ends the process and its group at once; its workers follow. A program that is not a hub may have children, which
// hold the pipes.
func (p *process) kill() {
	select {
	case <-p.ended:
		// Its id may have a new owner.
		return
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	// Without a group of that id the process alone is left.
	_ = p.cmd.Process.Kill()
}

// tail keeps the end of a text.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 16 * 1024

func (t *tail) add(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(append(t.text, line...), '\n')
	if len(t.text) > 2*tailSize {
		t.text = bytes.Clone(t.text[len(t.text)-tailSize:])
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-tailSize):])
}
