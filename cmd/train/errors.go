package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/trainer"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// width of the terminal that paragraphs are made for.
const width = 80

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1   // training failed
	exitUsage       = 2   // wrong usage or configuration
	exitNetwork     = 3   // a peer or the network failed
	exitInterrupted = 130 // by the user, after a checkpoint if one is configured
)

// usageError is a mistake on the command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// bug is a panic that reached the top.
type bug struct{ what string }

func (b *bug) Error() string {
	return "this is a mistake in GradFusion, not yours: " + b.what + ". Please report it with the configuration and the command line."
}

// coded is an error whose exit code is known.
type coded struct {
	error
	code int
}

func (e *coded) Unwrap() error { return e.error }

// exitCode maps what can go wrong to the contract's codes.
func exitCode(err error) int {
	var known *coded
	var said *told
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &said):
		return said.code
	case errors.As(err, &known):
		return known.code
	case errors.Is(err, trainer.ErrElsewhere): // the launcher blames whoever else fails
		return exitNetwork
	case errors.Is(err, trainer.ErrStopped), errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, new(*usageError)), errors.As(err, new(*config.Error)):
		return exitUsage
	case errors.As(err, new(*collective.PeerError)), errors.As(err, new(*collective.LinkError)),
		errors.As(err, new(*net.OpError)), errors.Is(err, syscall.EADDRINUSE), errors.Is(err, context.DeadlineExceeded):
		return exitNetwork
	}
	return exitFailed
}

// paragraph is what the user reads: the reason in lines of at most 80
// characters, then the excerpt of a file as it is.
func paragraph(err error) string {
	var said *told
	if errors.As(err, &said) {
		return said.text
	}
	if words, picture := cutPicture(err.Error()); picture != "" {
		return wrapAbove("train: " + words + picture)
	}
	reason, excerpt, _ := strings.Cut(err.Error(), "\n")
	out := wrap("train: "+reason, width)
	if excerpt != "" {
		if errors.As(err, new(*config.Error)) {
			out += strings.TrimSuffix(excerpt, "\n") + "\n"
		} else {
			out += wrap(strings.ReplaceAll(excerpt, "\n", "; "), width)
		}
	}
	return out
}

// pictureHead is the end of the line above a schedule's picture in an error of
// package parallel.
const pictureHead = " of the pipeline was at\n"

// cutPicture cuts a text in front of the picture that it ends with; picture is
// empty where there is none.
func cutPicture(text string) (words, picture string) {
	head, picture, found := strings.Cut(text, pictureHead)
	if !found {
		return text, ""
	}
	return head + pictureHead, picture
}

// wrapAbove is wrap for a text that may end with a picture, which stays as it is.
func wrapAbove(text string) string {
	words, picture := cutPicture(text)
	if picture == "" {
		return wrap(text, width)
	}
	at := strings.LastIndexByte(strings.TrimSuffix(words, "\n"), '\n') + 1 // the line above the picture
	return wrap(words[:at], width) + words[at:] + strings.TrimSuffix(picture, "\n") + "\n"
}

// wrap breaks a text at spaces. A longer word stays whole.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}
