package main

import (
	"context"
	"errors"
	"io"

	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/tcp"
	"github.com/gradfusion/gradfusion/launch"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// joinTransport connects a rank to the others as collective.transport says. auto
// takes shared memory when all ranks can reach it, which they find out together,
// and else TCP; why is worth telling where all were thought to be on this host.
func joinTransport(ctx context.Context, place launch.Place, meeting *launch.Rendezvous, c *config.Config) (*link, error) {
	l := &link{meeting: meeting}
	want := c.Collective.Transport
	if want != "tcp" {
		t, err := shm.Join(ctx, shm.Config{
			Rank: place.Rank, Size: place.Size, Namespace: place.Job, Token: place.Token,
			Store: meeting.Store, ConnectTimeout: c.Collective.Timeout,
		})
		switch {
		case err == nil:
			l.transport, l.name = t, "shm"
			return l, nil
		case want == "shm" || !errors.Is(err, shm.ErrUnavailable):
			return nil, err
		case place.LocalSize == place.Size:
			l.why = err.Error()
		}
	}
	t, err := tcp.Join(ctx, tcpConfig(place, meeting, &c.Collective))
	if err != nil {
		return nil, err
	}
	l.transport, l.name = t, "tcp"
	return l, nil
}

// explain has rank 0 say why auto did not take what one would expect.
func (l *link) explain(out io.Writer) {
	if l.why != "" && l.transport.Rank() == 0 {
		io.WriteString(out, wrap("train: collective.transport: auto takes tcp: "+l.why, width))
	}
}
